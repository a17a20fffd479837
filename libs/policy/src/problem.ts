/** What is wrong with a document, one entry for each place. */
export interface Problem {
  /** Where in the object: "spec.timeout.attempt", "spec.fallback[0].static", "metadata.labels[app]"; "" = the whole. */
  readonly path: string;
  /** The same as keys and list places, for looking up a line. */
  readonly segments: Path;
  /** What was found there; absent = nothing was. */
  readonly value?: unknown;
  /** For people; a sentence part without the path. */
  readonly message: string;
  /** What is allowed there, in words; "" = nothing is. */
  readonly allowed: string;
  /** A field's whole path, or a value, that was probably meant. */
  readonly suggestion?: string;
  readonly reason: ProblemReason;
  /** Where the document came from; absent for objects that came as objects. */
  readonly at?: ProblemPlace;
}

export type ProblemReason = 'unknown' | 'required' | 'invalid' | 'forbidden' | 'duplicate';

export interface ProblemPlace {
  /** A file's name, "stdin", … as given by the caller. */
  readonly source: string;
  /** Counts from 1. */
  readonly document: number;
  /** Place in the `items` of a List, from 0; absent when the document is no List. */
  readonly item?: number;
  /** Counts from 1; absent when not known. */
  readonly line?: number;
}

export type Path = readonly (string | number)[];

const PLAIN_KEY = /^[A-Za-z_$][A-Za-z0-9_$-]*$/;

/** ["spec", "fallback", 0] → "spec.fallback[0]"; keys with dots or slashes stand in brackets. */
export function pathText(path: Path): string {
  let out = '';
  for (const segment of path) {
    if (typeof segment === 'number') out += `[${segment}]`;
    else if (!PLAIN_KEY.test(segment)) out += `[${clip(segment, 80)}]`;
    else out += out === '' ? segment : `.${segment}`;
  }
  return out;
}

/** Makes a problem from its place; `value` is left out when undefined. */
export function problem(
  segments: Path,
  reason: ProblemReason,
  rest: {
    readonly message: string;
    readonly allowed?: string;
    readonly value?: unknown;
    readonly suggestion?: string | undefined;
    readonly at?: ProblemPlace | undefined;
  },
): Problem {
  return {
    path: pathText(segments),
    segments,
    reason,
    message: rest.message,
    allowed: rest.allowed ?? '',
    ...(rest.value === undefined ? {} : { value: rest.value }),
    ...(rest.suggestion === undefined ? {} : { suggestion: rest.suggestion }),
    ...(rest.at === undefined ? {} : { at: rest.at }),
  };
}

/** A value as a person would recognise it, at most 80 characters; never throws. */
export function valueText(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(clip(value, 72));
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : `a list of ${value.length}`;
  if (typeof value === 'object' && value !== null) {
    const keys = Object.keys(value);
    if (keys.length === 0) return 'an empty map';
    return clip(`a map with ${keys.slice(0, 4).join(', ')}${keys.length > 4 ? ', …' : ''}`, 80);
  }
  if (typeof value === 'function' || typeof value === 'symbol') return `a ${typeof value}`;
  return String(value);
}

export function clip(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1)}…`;
}

/**
 * One line a problem, for a terminal or a log:
 * `shop.yaml:14: spec.timeout.attempt: "3s" must be less than the total (2s)`.
 */
export function formatProblems(problems: readonly Problem[]): string {
  return problems.map(formatProblem).join('\n');
}

export function formatProblem(one: Problem): string {
  const place = one.at === undefined ? '' : `${placeText(one.at)}: `;
  const path = one.path === '' ? '' : `${one.path}: `;
  const hint = one.suggestion === undefined ? '' : `; did you mean ${one.suggestion}?`;
  const allowed = one.allowed === '' || one.message.includes(one.allowed) ? '' : ` (allowed: ${one.allowed})`;
  return `${place}${path}${one.message}${hint}${allowed}`;
}

/** "shop.yaml:14", "shop.yaml document 2", "stdin document 1 item 3". */
export function placeText(at: ProblemPlace): string {
  if (at.line !== undefined) return `${at.source}:${at.line}`;
  return `${at.source} document ${at.document}${at.item === undefined ? '' : ` item ${at.item + 1}`}`;
}
