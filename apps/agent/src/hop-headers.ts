/** Headers of one connection only; RFC 9110 §7.6.1. They are never passed on. */
export const HOP_BY_HOP: readonly string[] = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
];

/** Name and value pairs, flat, as `rawHeaders` has them. */
export type RawHeaders = readonly string[];

/** A set of header names. Looks at the letters of those names only whose length is that of one in the set. */
export class FieldNames {
  readonly #names: ReadonlySet<string>;
  readonly #lengths: readonly boolean[];

  /** Names in lower case. */
  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
    const lengths: boolean[] = new Array<boolean>(
      Math.max(0, ...[...this.#names].map(({ length }) => length)) + 1,
    );
    lengths.fill(false);
    for (const { length } of this.#names) lengths[length] = true;
    this.#lengths = lengths;
  }

  has(name: string): boolean {
    return this.#lengths[name.length] === true && this.#names.has(name.toLowerCase());
  }

  with(others: readonly string[]): FieldNames {
    return others.length === 0 ? this : new FieldNames([...this.#names, ...others]);
  }
}

const HOP = new FieldNames(HOP_BY_HOP);
const NO_NAMES: readonly string[] = [];

/** End-to-end headers only: without the fixed hop-by-hop ones, those that Connection names, and `extra`. */
export function endToEnd(raw: RawHeaders, extra: readonly string[] = NO_NAMES): string[] {
  return without(raw, HOP.with(extra));
}

/** End-to-end headers without those of `dropped` (Via and the hop-by-hop ones must be among them), and Via with one more member. */
export function passedOn(raw: RawHeaders, dropped: FieldNames, via: string): string[] {
  const kept = without(raw, dropped);
  kept.push('Via', withMember(listOf(raw, 'via'), via));
  return kept;
}

/** Without those of `dropped` and those that Connection names. */
function without(raw: RawHeaders, dropped: FieldNames): string[] {
  const names = dropped.with(namedByConnection(raw));
  const kept: string[] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    if (!names.has(name)) kept.push(name, raw[index + 1] ?? '');
  }
  return kept;
}

/**
 * What no sender can make a header of one connection (RFC 9110 §7.6.1: those meant for all recipients). Passed on without its
 * length, a body would be read as the next request.
 */
const FOR_ALL_RECIPIENTS = new FieldNames(['content-length', 'host', 'traceparent', 'tracestate']);

/** Names that Connection makes hop-by-hop, lower case; its usual options are none. */
export function namedByConnection(raw: RawHeaders): readonly string[] {
  const list = listOf(raw, 'connection')?.toLowerCase();
  if (list === undefined || list === 'keep-alive' || list === 'close') return NO_NAMES;
  return list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => !FOR_ALL_RECIPIENTS.has(name));
}

/** RFC 9110 §6.5.1: what says how a message is to be read, and to whom it goes, does not come after it. */
const NO_TRAILERS = new FieldNames([
  ...HOP_BY_HOP,
  ...['content-encoding', 'content-length', 'content-range', 'content-type', 'host', 'trailer'],
]);

/** Trailer fields that may be passed on. */
export function trailersPassedOn(raw: RawHeaders): string[] {
  return without(raw, NO_TRAILERS);
}

/** First value of a header, or undefined. */
export function headerOf(raw: RawHeaders, name: string): string | undefined {
  for (let index = 0; index + 1 < raw.length; index += 2) {
    if (isNamed(raw[index], name)) return raw[index + 1];
  }
  return undefined;
}

/** All values of a list header; undefined = it is not there. */
export function listOf(raw: RawHeaders, name: string): string | undefined {
  let list: string | undefined;
  for (let index = 0; index + 1 < raw.length; index += 2) {
    if (isNamed(raw[index], name)) list = withMember(list, raw[index + 1] ?? '');
  }
  return list;
}

/** `name` is in lower case. */
function isNamed(raw: string | undefined, name: string): boolean {
  return raw !== undefined && raw.length === name.length && raw.toLowerCase() === name;
}

/** A list header with one more member. */
export function withMember(list: string | undefined, last: string): string {
  return list === undefined ? last : `${list}, ${last}`;
}

/** Replaces every value of each header of `marks`. */
export function withHeaders(raw: RawHeaders, marks: Readonly<Record<string, string>>): string[] {
  const names = new FieldNames(Object.keys(marks).map((name) => name.toLowerCase()));
  const kept: string[] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    if (!names.has(name)) kept.push(name, raw[index + 1] ?? '');
  }
  for (const [name, value] of Object.entries(marks)) kept.push(name, value);
  return kept;
}
