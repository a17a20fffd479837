import { UsageError } from '../command-error.js';

const STEP = /\.([A-Za-z_$][\w$-]*)|\[(\d+)\]|\['([^']+)'\]/y;

/** ".status.calls.perSecond" or "{.metadata.name}" as keys and list places. */
export function parsePath(text: string): readonly (string | number)[] {
  const bare = text.replace(/^\{(.*)\}$/, '$1');
  const path = bare.startsWith('.') || bare.startsWith('[') ? bare : `.${bare}`;
  const steps: (string | number)[] = [];
  STEP.lastIndex = 0;
  while (STEP.lastIndex < path.length) {
    const match = STEP.exec(path);
    if (match === null)
      throw new UsageError(
        `"${text}" is no path`,
        "Example: .status.calls.perSecond, .metadata.labels['app']",
      );
    steps.push(match[2] === undefined ? (match[1] ?? match[3] ?? '') : Number(match[2]));
  }
  return steps;
}

export function valueAt(object: unknown, path: readonly (string | number)[]): unknown {
  let value: unknown = object;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string | number, unknown>)[step];
  }
  return value;
}

/** By the value at `path` of each row's object: numbers by size, texts by their letters; those without one last. */
export function sortRows<Row extends { readonly object?: unknown }>(
  rows: readonly Row[],
  path?: string,
): readonly Row[] {
  if (path === undefined) return rows;
  const steps = parsePath(path);
  const keyed = rows.map((row) => ({ row, key: valueAt(row.object, steps) }));
  return keyed.sort((a, b) => compareValues(a.key, b.key)).map(({ row }) => row);
}

function compareValues(a: unknown, b: unknown): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  const [left, right] = [a, b].map((value) => (typeof value === 'string' ? value : JSON.stringify(value)));
  return (left ?? '').localeCompare(right ?? '', 'en', { numeric: true });
}
