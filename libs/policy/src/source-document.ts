/** What is read from a text, and how much of it. */
import { DocumentError, type DocumentErrorCode } from './document-error.js';
import { problem, type Path, type ProblemPlace } from './problem.js';

/** Bytes of UTF-8 in one text. */
export const MAX_TEXT_BYTES = 1_048_576;
/** Documents in one text, items of Lists counted singly. */
export const MAX_DOCUMENTS = 1_000;
/**
 * Pieces the text falls into (words, indicators, spaces, line ends): what reading costs, about 2 µs each. Ordinary
 * policies have one for every two bytes, so this is some 800 KB of them; text made to be slow has more.
 */
export const MAX_TOKENS = 400_000;
/** Values in one document, aliases counted each time they are used. Lists hold many objects. */
export const MAX_DOCUMENT_VALUES = 100_000;

/** One object as it was written. */
export interface SourceDocument {
  /** Where it stands; `line` is its first. */
  readonly at: ProblemPlace;
  /** Plain data: maps, lists, texts, finite numbers, booleans, null. */
  readonly value: unknown;
  /** The line of the nearest part of `path` that is in the text. */
  readonly lineOf: (path: Path) => number | undefined;
}

export function tooManyDocuments(source: string): DocumentError {
  const message = `there are more than ${MAX_DOCUMENTS} documents in one file; split it`;
  return failedText('BULWARK_DOCUMENT_TOO_MANY', {
    source,
    message,
    allowed: `at most ${MAX_DOCUMENTS} documents`,
  });
}

/** Refuses a text as a whole. */
export function failedText(
  code: DocumentErrorCode,
  what: {
    readonly source: string;
    readonly message: string;
    readonly allowed: string;
    readonly line?: number;
  },
): DocumentError {
  const at = { source: what.source, document: 1, ...(what.line === undefined ? {} : { line: what.line }) };
  const one = problem([], 'invalid', { message: what.message, allowed: what.allowed, at });
  return new DocumentError(code, [one]);
}
