import type { Resource, Table, TableColumn } from '@bulwark/views';
import { objectPath, usualWidth } from '@bulwark/views';
import { ColumnWriter, type ColumnShape } from '../output/columns.js';
import type { Paint } from '../output/colour.js';
import type { GetOptions } from './options.js';

/** What a row's object is known by; `includeObject` Metadata is the least that a server sends. */
export interface RowMetadata {
  readonly name?: string;
  readonly namespace?: string;
  readonly resourceVersion?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

export function metadataOf(object: unknown): RowMetadata {
  if (typeof object !== 'object' || object === null) return {};
  return (object as { metadata?: RowMetadata }).metadata ?? {};
}

export type RowLook = Pick<
  GetOptions,
  'allNamespaces' | 'output' | 'headers' | 'showLabels' | 'labelColumns' | 'watch' | 'watchEvents'
> & {
  /** "kind.group/" stands before each name, since several kinds are shown. */
  readonly prefixed: boolean;
};

interface ShownColumn extends ColumnShape {
  readonly cell: (row: Table['rows'][number], event: string) => string;
  /** Cells may become this wide later. */
  readonly room?: number;
}

/** Rows of one kind as lines of text. */
export class RowWriter {
  private readonly columns: readonly ShownColumn[];
  private readonly writer: ColumnWriter;
  private headerDue: boolean;

  constructor(
    resource: Resource,
    definitions: readonly TableColumn[],
    look: RowLook & { readonly paint: Paint },
  ) {
    this.columns = shownColumns(resource, definitions, look);
    this.writer = new ColumnWriter(this.columns, look.paint);
    this.headerDue = look.headers;
    this.writer.fit([this.columns.map(({ room = 0 }) => ' '.repeat(room))]);
  }

  /** `event` is shown when the look asks for events. The header comes before the first row. */
  lines(rows: Table['rows'], event = ''): string {
    const cells = rows.map((row) => this.columns.map((column) => column.cell(row, event)));
    if (this.headerDue) this.writer.fit([this.columns.map((column) => column.name)]);
    this.writer.fit(cells);
    const header = this.headerDue && rows.length > 0 ? this.writer.header() : '';
    if (rows.length > 0) this.headerDue = false;
    return header + cells.map((row) => this.writer.line(row)).join('');
  }
}

const RIGHT: ReadonlySet<string> = new Set(['number', 'live']);

function shownColumns(resource: Resource, definitions: readonly TableColumn[], look: RowLook): ShownColumn[] {
  const extra = (name: string, cell: ShownColumn['cell']): ShownColumn => ({ name, right: false, cell });
  const shown = definitions.flatMap((definition, index): ShownColumn[] => {
    if (definition.priority > 0 && look.output.format !== 'wide') return [];
    const prefix = index === 0 && look.prefixed ? objectPath(resource, '') : '';
    const right =
      definition.type === 'integer' || definition.type === 'number' || RIGHT.has(definition.format);
    const room = look.watch ? usualWidth(resource.plural, definition.name) : 0;
    const name = definition.name.toUpperCase();
    return [{ name, right, room, cell: (row) => prefix + cellText(row.cells[index]) }];
  });
  return [
    ...(look.watchEvents ? [{ ...extra('EVENT', (_, event) => event), room: 'MODIFIED'.length }] : []),
    ...(look.allNamespaces ? [extra('NAMESPACE', (row) => metadataOf(row.object).namespace ?? '')] : []),
    ...shown,
    ...look.labelColumns.map((label) =>
      extra(labelHeader(label), (row) => metadataOf(row.object).labels?.[label] ?? ''),
    ),
    ...(look.showLabels ? [extra('LABELS', (row) => labelsText(metadataOf(row.object).labels))] : []),
  ];
}

function cellText(cell: unknown): string {
  if (cell === null || cell === undefined) return '<none>';
  return typeof cell === 'string' ? cell : JSON.stringify(cell);
}

function labelHeader(label: string): string {
  return label.slice(label.lastIndexOf('/') + 1).toUpperCase();
}

function labelsText(labels: Readonly<Record<string, string>> = {}): string {
  const pairs = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return pairs.map(([key, value]) => `${key}=${value}`).join(',') || '<none>';
}
