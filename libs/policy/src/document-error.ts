import { formatProblems, type Problem } from './problem.js';

export type DocumentErrorCode =
  /** The text is over MAX_TEXT_BYTES. */
  | 'BULWARK_DOCUMENT_TOO_LARGE'
  /** More than MAX_DOCUMENTS in one text, or too many values or aliases in one document. */
  | 'BULWARK_DOCUMENT_TOO_MANY'
  | 'BULWARK_DOCUMENT_TOO_DEEP'
  /** No document at all: an empty file, or comments only. */
  | 'BULWARK_DOCUMENT_EMPTY'
  /** Neither YAML nor JSON, or a part of YAML that is refused: duplicate keys, merge keys, tags, odd keys, NaN. */
  | 'BULWARK_DOCUMENT_SYNTAX'
  /** Well-formed, and not what the schema or the checks allow. */
  | 'BULWARK_DOCUMENT_INVALID';

/** A text that cannot be used. `problems` names everything found; at least one. `code` is stable. */
export class DocumentError extends Error {
  constructor(
    readonly code: DocumentErrorCode,
    readonly problems: readonly Problem[],
  ) {
    super(formatProblems(problems));
    this.name = 'DocumentError';
  }
}
