import type { Line, Measured, Reach } from './harness.js';

/** The contract's fields and no others, in their order; figures to six digits, one that could not be measured as null. */
export function jsonLine(measured: Measured): string {
  const { suite, name, unit, ratioTo, reach, ok, runs } = measured;
  const value = sixDigits(measured.value);
  const ratio = measured.ratio === null ? null : sixDigits(measured.ratio);
  const line: Line = { suite, name, value, unit, ratioTo, ratio, reach, ok, runs };
  return JSON.stringify(line);
}

function sixDigits(value: number): number {
  return Number(value.toPrecision(6));
}

/** A titled part of a suite's table. */
export interface Section {
  readonly title: string;
  readonly lines: readonly Measured[];
}

const HEADINGS = ['', 'median', 'lowest .. highest', 'ratio', 'reference', 'asked for', ''];
const RIGHT = [false, true, true, true, true, false, false];

/** An aligned table: names to the left, figures to the right, the verdict last. Columns that nobody fills are left out. */
export function table({ title, lines }: Section): string {
  const rows = lines.map((line) => cells({ ...line, name: withoutTitle(line.name, title) }));
  const used = HEADINGS.map((_, column) => rows.some((row) => row[column] !== ''));
  const shown = [HEADINGS, ...rows].map((row) => row.filter((_, column) => used[column]));
  const toTheRight = RIGHT.filter((_, column) => used[column]);
  const widths = (shown[0] ?? []).map((_, column) => Math.max(...shown.map((row) => lengthOf(row[column]))));
  const text = shown.map((row) =>
    row.map((cell, column) => aligned(cell, widths[column] ?? 0, toTheRight[column] === true)).join('  '),
  );
  return [...(title === '' ? [] : [title]), ...text.map((line) => `  ${line.trimEnd()}`)].join('\n');
}

/** Names are unique in their suite, so they may begin with what the title says already. */
function withoutTitle(name: string, title: string): string {
  return name.startsWith(`${title}: `) ? name.slice(title.length + 2) : name;
}

/** In characters, not in UTF-16 units. */
function lengthOf(cell = ''): number {
  return [...cell].length;
}

function aligned(cell: string, width: number, toTheRight: boolean): string {
  const room = ' '.repeat(width - lengthOf(cell));
  return toTheRight ? room + cell : cell + room;
}

function cells(line: Measured): string[] {
  const spread = line.runs === 1 ? '' : `${plain(line.lowest)} .. ${plain(line.highest)}`;
  const ratio = line.ratio === null ? '' : `${plain(line.ratio)} × ${line.ratioTo}`;
  const asked =
    line.asked === undefined ? '' : reachText(line.asked, line.ratioTo === null ? line.unit : '×');
  const verdict = line.asked === undefined ? '' : line.ok ? 'ok' : 'MISSED';
  return [line.name, withUnit(line.value, line.unit), spread, ratio, line.reference, asked, verdict];
}

/** "≤ 4 ×", "≥ 100 requests/s", "203 ms (200 to 300)". */
export function reachText(reach: Reach, unit: string): string {
  const figure = withUnit(reach.figure, unit);
  switch (reach.kind) {
    case 'at-most':
      return `≤ ${figure}`;
    case 'at-least':
      return `≥ ${figure}`;
    case 'near':
      return `${figure} (${plain(reach.from)} to ${plain(reach.to)})`;
  }
}

function withUnit(value: number, unit: string): string {
  return unit === '' ? plain(value) : `${plain(value)} ${unit}`;
}

/** Three digits that matter, whole numbers in full. */
export function plain(value: number): string {
  if (!Number.isFinite(value)) return 'none';
  const digits = value === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return String(Number(value.toFixed(Math.min(digits, 4))));
}
