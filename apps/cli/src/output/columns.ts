import { tintOf, type Paint } from './colour.js';

export interface ColumnShape {
  readonly name: string;
  /** Text that is aligned to the right. */
  readonly right: boolean;
}

const GAP = '   ';

/**
 * Lines of aligned cells. Widths are remembered, so that rows which come later (a watch) stand under the earlier ones;
 * a wider cell widens its column from there on.
 */
export class ColumnWriter {
  private readonly widths: number[];

  constructor(
    private readonly columns: readonly ColumnShape[],
    private readonly paint: Paint,
  ) {
    this.widths = columns.map(() => 0);
  }

  /** Makes room for these before anything is written. */
  fit(rows: readonly (readonly string[])[]): void {
    for (const row of rows) {
      row.forEach((cell, index) => (this.widths[index] = Math.max(this.widths[index] ?? 0, cell.length)));
    }
  }

  header(): string {
    return this.line(
      this.columns.map((column) => column.name),
      false,
    );
  }

  line(cells: readonly string[], tinted = true): string {
    this.fit([cells]);
    const last = cells.length - 1;
    const padded = cells.map((cell, index) => {
      const width = this.widths[index] ?? 0;
      const text = tinted ? this.paint(cell, tintOf(cell)) : cell;
      const padding = ' '.repeat(width - cell.length);
      if (this.columns[index]?.right === true) return padding + text;
      return index === last ? text : text + padding;
    });
    return `${padded.join(GAP).trimEnd()}\n`;
  }
}
