import { tintOf, type Paint } from '../output/colour.js';
import { ColumnWriter } from '../output/columns.js';

/** A label and what stands behind it; undefined entries are left out. */
export type Entry = readonly [label: string, value: string | readonly Entry[] | DescribedTable | undefined];

export interface DescribedTable {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

const INDENT = '  ';

/** "Label:   value" lines; labels of one level stand in one column, deeper levels are indented. */
export function sectionsText(entries: readonly Entry[], paint: Paint, indent = ''): string {
  const present = entries.filter(([, value]) => value !== undefined);
  const inline = present.filter(([, value]) => typeof value === 'string');
  const width = Math.max(0, ...inline.map(([label]) => label.length)) + 1;
  return present.map(([label, value]) => entryText([label, value], { width, paint, indent })).join('');
}

interface Look {
  readonly width: number;
  readonly paint: Paint;
  readonly indent: string;
}

function entryText([label, value]: Entry, { width, paint, indent }: Look): string {
  if (value === undefined) return '';
  if (typeof value === 'string') {
    const [first = '', ...more] = printable(value).split('\n');
    const rest = more.map((line) => `${indent}${' '.repeat(width + 2)}${line}\n`).join('');
    return `${indent}${`${label}:`.padEnd(width + 2)}${tintFirstWord(first, paint)}\n${rest}`.replace(
      / +\n/g,
      '\n',
    );
  }
  const inner = indent + INDENT;
  if ('head' in value) return `${indent}${label}:\n${tableText(value, paint, inner)}`;
  return `${indent}${label}:\n${sectionsText(value, paint, inner)}`;
}

function tableText({ head, rows }: DescribedTable, paint: Paint, indent: string): string {
  if (rows.length === 0) return `${indent}<none>\n`;
  const writer = new ColumnWriter(
    head.map((name) => ({ name, right: false })),
    paint,
  );
  const clean = rows.map((row) => row.map((cell) => printable(cell).replaceAll('\n', ' ')));
  writer.fit([head, ...clean]);
  return [writer.header(), ...clean.map((row) => writer.line(row))].map((line) => indent + line).join('');
}

/** Texts come from agents and other people; none of them may steer the terminal. */
function printable(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, '?');
}

function tintFirstWord(line: string, paint: Paint): string {
  const [word = ''] = line.split(' ', 1);
  return paint(word, tintOf(word)) + line.slice(word.length);
}
