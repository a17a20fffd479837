import type { Dispatcher } from 'undici';

type Given = Dispatcher.DispatchOptions['headers'];
type Pairs = readonly (readonly [string, string | string[] | undefined])[];

/** The headers of a request in any of undici's forms, as pairs. */
export function headerPairs(given: Given): Pairs {
  if (given === null || given === undefined) return [];
  if (Array.isArray(given) && !given.every((item) => Array.isArray(item))) {
    const flat = given;
    return flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1]] as const] : []));
  }
  if (Symbol.iterator in given) return [...(given as Iterable<[string, string | string[] | undefined]>)];
  return Object.entries(given as Record<string, string | string[] | undefined>);
}

/** Reads one header of a request; several values are joined. */
export function readPair(pairs: Pairs, name: string): string | undefined {
  const values = pairs.filter(([given, value]) => given.toLowerCase() === name && value !== undefined);
  return values.length === 0 ? undefined : values.flatMap(([, value]) => value).join(', ');
}

/** The same headers with these in the place of their namesakes, as undici's flat list. */
export function withMarks(pairs: Pairs, marks: Readonly<Record<string, string>>): string[] {
  const kept = pairs.filter(([name]) => !(name.toLowerCase() in marks));
  return [...kept, ...Object.entries(marks)].flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().flatMap((one) => [name, one]),
  );
}
