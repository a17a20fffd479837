/** Finds the field that somebody who misspelt or misplaced one probably meant. */
import { pathText, type Path } from './problem.js';
import type { JsonSchema } from './schema/builders.js';

/** Words other products use for ours; compared in lower case. */
const ALSO_CALLED: Readonly<Record<string, string>> = {
  breaker: 'circuitBreaker',
  circuitbreakers: 'circuitBreaker',
  outlierdetection: 'circuitBreaker',
  retries: 'retry',
  attempts: 'maxAttempts',
  numretries: 'maxAttempts',
  maxretries: 'maxAttempts',
  pertry: 'attempt',
  pertrytimeout: 'attempt',
  deadline: 'total',
  timeouts: 'timeout',
  fallbacks: 'fallback',
  cache: 'lastGood',
  stale: 'lastGood',
  threshold: 'ratio',
  errorrate: 'failureRate',
  slowcalls: 'slowRate',
  consecutive: 'consecutiveFailures',
  opentime: 'cooldown',
  sleepwindow: 'cooldown',
  halfopen: 'probe',
  concurrency: 'maxConcurrent',
  queue: 'maxQueued',
  upstream: 'target',
  host: 'service',
  selector: 'callers',
};

/** The nearest field: beside the unknown one first, then anywhere; its whole path. Undefined = none is near. */
export function nearestField(root: JsonSchema, parent: JsonSchema, path: Path): string | undefined {
  const name = String(path.at(-1));
  const parentPath = path.slice(0, -1);
  const siblings = Object.keys(parent.properties ?? {});
  const also = Object.hasOwn(ALSO_CALLED, name.toLowerCase()) ? ALSO_CALLED[name.toLowerCase()] : undefined;
  if (also !== undefined && siblings.includes(also)) return pathText([...parentPath, also]);
  const near = nearestWord(name, siblings);
  if (near !== undefined) return pathText([...parentPath, near]);
  const everywhere = allFields(root);
  const wanted = (also ?? name).toLowerCase();
  return (
    everywhere.find((field) => field.name.toLowerCase() === wanted)?.path ?? nearestByName(name, everywhere)
  );
}

/** The word with the fewest edits, when few enough for its length; letter case costs nothing. */
export function nearestWord(word: string, words: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestEdits = Infinity;
  if (word.length > 64) return undefined;
  for (const candidate of words) {
    const edits = editDistance(word.toLowerCase(), candidate.toLowerCase());
    const longest = Math.max(word.length, candidate.length);
    if (edits < bestEdits && edits <= Math.max(1, Math.floor(longest * 0.45))) {
      best = candidate;
      bestEdits = edits;
    }
  }
  return best;
}

interface Field {
  readonly name: string;
  readonly path: string;
}

function nearestByName(name: string, fields: readonly Field[]): string | undefined {
  const near = nearestWord(
    name,
    fields.map((field) => field.name),
  );
  if (near === undefined || editDistance(name.toLowerCase(), near.toLowerCase()) > 2) return undefined;
  return fields.find((field) => field.name === near)?.path;
}

const fieldsOf = new WeakMap<JsonSchema, readonly Field[]>();

/** Every field of `spec`, outer ones first. */
function allFields(root: JsonSchema): readonly Field[] {
  const known = fieldsOf.get(root);
  if (known !== undefined) return known;
  const fields: Field[] = [];
  let level: { schema: JsonSchema; path: Path }[] = [
    { schema: root.properties?.['spec'] ?? {}, path: ['spec'] },
  ];
  while (level.length > 0) {
    const next: typeof level = [];
    for (const { schema, path } of level) {
      for (const one of schema.anyOf ?? [schema]) {
        for (const [name, member] of Object.entries(one.properties ?? {})) {
          fields.push({ name, path: pathText([...path, name]) });
          next.push({ schema: member, path: [...path, name] });
        }
        if (one.items !== undefined) next.push({ schema: one.items, path: [...path, 0] });
      }
    }
    level = next;
  }
  fieldsOf.set(root, fields);
  return fields;
}

/** Insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
export function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, (before[j - 2] ?? 0) + 1);
      }
      row.push(cost);
    }
    before = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
