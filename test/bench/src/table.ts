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

const HEADINGS = ['', 'median', 'lowest .. highest', 'ratio', 'asked for', ''];

/** An aligned table: names to the left, figures to the right, the verdict last. */
export function table({ title, lines }: Section): string {
  const rows = [HEADINGS, ...lines.map(cells)];
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((row) => [...(row[column] ?? '')].length)));
  const text = rows.map((row) =>
    row
      .map((cell, column) => aligned(cell, column, widths))
      .join('  ')
      .trimEnd(),
  );
  return [...(title === '' ? [] : [title]), ...text.map((line) => `  ${line}`)].join('\n');
}

function aligned(cell: string, column: number, widths: readonly number[]): string {
  const room = ' '.repeat((widths[column] ?? 0) - [...cell].length);
  const left = column === 0 || column >= 4;
  return left ? cell + room : room + cell;
}

function cells(line: Measured): string[] {
  const spread = line.runs === 1 ? '' : `${plain(line.lowest)} .. ${plain(line.highest)}`;
  const ratio = line.ratio === null ? '' : `${plain(line.ratio)} × ${line.ratioTo}`;
  const asked =
    line.asked === undefined ? '' : reachText(line.asked, line.ratioTo === null ? line.unit : '×');
  const verdict = line.asked === undefined ? '' : line.ok ? 'ok' : 'MISSED';
  return [line.name, withUnit(line.value, line.unit), spread, ratio, asked, verdict];
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
