/** Headers of one connection only; RFC 9110 §7.6.1. They are never passed on. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
]);

/** Name and value pairs, flat, as `rawHeaders` has them. */
export type RawHeaders = readonly string[];

/** End-to-end headers only: without the fixed hop-by-hop ones, those that Connection names, and `extra`. */
export function endToEnd(raw: RawHeaders, extra: readonly string[] = []): string[] {
  const dropped = new Set(extra);
  for (let index = 0; index + 1 < raw.length; index += 2) {
    if (raw[index]?.toLowerCase() !== 'connection') continue;
    for (const name of (raw[index + 1] ?? '').split(',')) dropped.add(name.trim().toLowerCase());
  }
  const kept: string[] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    const lower = name.toLowerCase();
    if (!HOP_BY_HOP.has(lower) && !dropped.has(lower)) kept.push(name, raw[index + 1] ?? '');
  }
  return kept;
}

/** First value of a header, or undefined. */
export function headerOf(raw: RawHeaders, name: string): string | undefined {
  for (let index = 0; index + 1 < raw.length; index += 2) {
    if (raw[index]?.toLowerCase() === name) return raw[index + 1];
  }
  return undefined;
}

/** All values of a list header; undefined = it is not there. */
export function listOf(raw: RawHeaders, name: string): string | undefined {
  const values = raw.filter((_value, at) => at % 2 === 1 && raw[at - 1]?.toLowerCase() === name);
  return values.length === 0 ? undefined : values.join(', ');
}

/** A list header with one more member. */
export function withMember(list: string | undefined, last: string): string {
  return list === undefined ? last : `${list}, ${last}`;
}

/** Replaces every value of each header of `marks`. */
export function withHeaders(raw: RawHeaders, marks: Readonly<Record<string, string>>): string[] {
  const names = new Set(Object.keys(marks).map((name) => name.toLowerCase()));
  const kept: string[] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    if (!names.has(name.toLowerCase())) kept.push(name, raw[index + 1] ?? '');
  }
  for (const [name, value] of Object.entries(marks)) kept.push(name, value);
  return kept;
}
