import type { ResiliencePolicy } from '@bulwark/policy';
import { agentColumns } from './agents.js';
import { breakerColumns, compare, worstFirst } from './breakers.js';
import type { Column } from './column.js';
import { UNREADABLE } from './numbers.js';
import type { AgentObject, BreakerObject } from './objects.js';
import { policyColumns } from './policies.js';
import type { Plural } from './resources.js';

export interface ObjectOf {
  readonly resiliencepolicies: ResiliencePolicy;
  readonly breakers: BreakerObject;
  readonly agents: AgentObject;
}

/** `meta.k8s.io/v1` Table, the parts that clients read. Cells are one-line ASCII text. */
export interface Table {
  readonly kind: 'Table';
  readonly apiVersion: 'meta.k8s.io/v1';
  readonly metadata: { readonly resourceVersion?: string };
  readonly columnDefinitions: readonly TableColumn[];
  readonly rows: readonly TableRow[];
}

export interface TableColumn {
  readonly name: string;
  /** `date`: the cell is the human span already. */
  readonly type: 'string' | 'date' | 'integer' | 'number';
  /** `name` for the first column; `number` and `live` for text aligned to the right; `remark` (see column.ts); else empty. */
  readonly format: string;
  readonly description: string;
  /** 0 = always shown; more = with `-o wide`. */
  readonly priority: number;
}

export interface TableRow {
  readonly cells: readonly string[];
  readonly object?: unknown;
}

export interface TableOptions {
  /** Unix milliseconds; ages are relative to it. */
  readonly now: number;
  /** Of the list. */
  readonly resourceVersion?: string;
  /** What stands beside each row's cells: `includeObject` of the request. Absent = Metadata. */
  readonly includeObject?: 'Metadata' | 'Object' | 'None';
  /** False in the later events of a watch, which repeat no columns. Absent = true. */
  readonly columns?: boolean;
}

const COLUMNS: { readonly [P in Plural]: readonly Column<ObjectOf[P]>[] } = {
  resiliencepolicies: policyColumns,
  breakers: breakerColumns,
  agents: agentColumns,
};

export function columnsFor(plural: Plural): TableColumn[] {
  return COLUMNS[plural].map(({ name, description, priority, shape }) => ({
    name,
    type: shape === 'age' ? 'date' : 'string',
    format: shape === undefined || shape === 'age' ? '' : shape,
    description,
    priority,
  }));
}

/** Characters that most cells of a column stay within; 0 = not known. */
export function usualWidth(plural: Plural, columnName: string): number {
  return COLUMNS[plural].find(({ name }) => name === columnName)?.room ?? 0;
}

/** One cell for each of `columnsFor(plural)`. `now` in Unix milliseconds. */
export function rowFor<P extends Plural>(plural: P, object: ObjectOf[P], now: number): string[] {
  const columns: readonly Column<ObjectOf[P]>[] = COLUMNS[plural];
  return columns.map((column) => cellOf(column, object, now));
}

/** An object of another version may lack what a column shows; it must not take the other rows with it. */
function cellOf<Item>(column: Column<Item>, object: Item, now: number): string {
  try {
    return column.cell(object, now);
  } catch {
    return UNREADABLE;
  }
}

/** In the order people want to read: breakers worst first, the others by namespace and name. A new array. */
export function inOrder<P extends Plural>(plural: P, objects: readonly ObjectOf[P][]): ObjectOf[P][] {
  if (plural === 'breakers') return worstFirst(objects as readonly BreakerObject[]) as ObjectOf[P][];
  return [...objects].sort(
    (a, b) =>
      compare(a.metadata.namespace ?? '', b.metadata.namespace ?? '') ||
      compare(a.metadata.name, b.metadata.name),
  );
}

export function tableFor<P extends Plural>(
  plural: P,
  objects: readonly ObjectOf[P][],
  options: TableOptions,
): Table {
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: options.resourceVersion === undefined ? {} : { resourceVersion: options.resourceVersion },
    columnDefinitions: options.columns === false ? [] : columnsFor(plural),
    rows: inOrder(plural, objects).map((object) => ({
      cells: rowFor(plural, object, options.now),
      ...besideCells(object, options.includeObject ?? 'Metadata'),
    })),
  };
}

function besideCells(
  object: ObjectOf[Plural],
  include: 'Metadata' | 'Object' | 'None',
): { object?: unknown } {
  switch (include) {
    case 'None':
      return {};
    case 'Object':
      return { object };
    case 'Metadata':
      return {
        object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata },
      };
  }
}
