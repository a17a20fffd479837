/**
 * Text to documents: YAML 1.2 or JSON, several in one text, Lists taken apart. Everything is bounded before it is
 * built, since the text may come from anybody.
 */
import { DocumentError } from './document-error.js';
import type { Path } from './problem.js';
import {
  failedText,
  MAX_DOCUMENTS,
  MAX_TEXT_BYTES,
  tooManyDocuments,
  type SourceDocument,
} from './source-document.js';
import { utf8Length } from './utf8-length.js';

export interface ParseOptions {
  /** A file's name, "stdin", …: stands in every problem. */
  readonly source: string;
}

/**
 * All documents of a text in order; at least one. Empty documents between `---` are passed over.
 * @throws DocumentError with everything that is wrong; it is the only error thrown.
 */
export async function parseDocuments(
  text: string,
  options: ParseOptions,
): Promise<readonly SourceDocument[]> {
  const { source } = options;
  // A text that is too long in characters is too long in bytes.
  const bytes = text.length > MAX_TEXT_BYTES ? text.length : utf8Length(text);
  if (bytes > MAX_TEXT_BYTES) {
    const allowed = `at most ${MAX_TEXT_BYTES} bytes (1 MiB)`;
    const message = `the text has ${bytes} bytes, more than the ${MAX_TEXT_BYTES} (1 MiB) allowed in one file; split it`;
    throw failedText('BULWARK_DOCUMENT_TOO_LARGE', { source, message, allowed });
  }
  // Loaded on first use: agents and most commands never read YAML, and it costs 20 ms.
  const { readYaml } = await import('./yaml-reader.js');
  const read = readYaml(text, source);
  if (read.problems.length > 0) throw new DocumentError(read.code, read.problems);
  const documents = read.documents.flatMap(itemsOf);
  if (documents.length === 0) {
    const message = 'there is no document in it: it is empty or holds comments only';
    throw failedText('BULWARK_DOCUMENT_EMPTY', { source, message, allowed: 'at least one document' });
  }
  if (documents.length > MAX_DOCUMENTS) throw tooManyDocuments(source);
  return documents;
}

/** The items of a `kind: List` (or `…List`), else the document itself. */
function itemsOf(document: SourceDocument): readonly SourceDocument[] {
  const { value, at, lineOf } = document;
  if (typeof value !== 'object' || value === null || !('kind' in value) || !('items' in value))
    return [document];
  const { kind, items } = value;
  if (typeof kind !== 'string' || !kind.endsWith('List') || !Array.isArray(items)) return [document];
  return items.slice(0, MAX_DOCUMENTS + 1).map((item: unknown, index) => {
    const line = lineOf(['items', index]);
    return {
      value: item,
      at: { ...at, item: index, ...(line === undefined ? {} : { line }) },
      lineOf: (path: Path) => lineOf(['items', index, ...path]),
    };
  });
}
