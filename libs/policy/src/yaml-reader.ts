/**
 * The one place that knows the `yaml` package. It is used from the tokens up, so that nesting and the number of
 * documents are bounded before its recursive composer runs, and its own duplicate-key check (quadratic) stays off.
 */
import { Composer, Lexer, LineCounter, Parser, type Document, type ParsedNode, type YAMLError } from 'yaml';
import type { DocumentErrorCode } from './document-error.js';
import { MAX_DEPTH } from './plain-copy.js';
import { clip, problem, type Path, type Problem, type ProblemPlace } from './problem.js';
import {
  failedText,
  MAX_DOCUMENTS,
  MAX_TOKENS,
  tooManyDocuments,
  type SourceDocument,
} from './source-document.js';
import { YamlValues } from './yaml-values.js';

/** Problems listed for one text; the rest is left out, since one slip can give very many. */
const MAX_LISTED = 50;

type SyntaxHandler = (where: unknown, code: string, message: string) => void;

export interface ReadYaml {
  readonly documents: readonly SourceDocument[];
  readonly problems: readonly Problem[];
  /** What the problems are, when there are any. */
  readonly code: DocumentErrorCode;
}

export function readYaml(text: string, source: string): ReadYaml {
  const lines = new LineCounter();
  const reading = new Reading(lines, source);
  const composer = new Composer(COMPOSER_OPTIONS);
  // The composer collects every error, each with its stack trace: seconds for a text made of errors. The name is
  // private to the package; were it gone, errors would come with the documents as they do without this.
  Object.assign(composer, { onError: reading.onSyntax });
  try {
    for (const token of boundedTokens(text, { lines, source })) {
      if (token.type === 'document') reading.begun += 1;
      if (token.type === 'error') reading.onSyntax(token.offset, 'UNEXPECTED_TOKEN', token.message);
      else for (const parsed of composer.next(token)) reading.take(parsed);
    }
    for (const parsed of composer.end()) reading.take(parsed);
  } catch (error) {
    if (!(error instanceof EnoughProblems)) throw error;
  }
  // The composer is one document behind the parser, so faults do not come in order.
  reading.problems.sort((a, b) => (a.at?.line ?? 0) - (b.at?.line ?? 0));
  return reading;
}

const COMPOSER_OPTIONS = {
  uniqueKeys: false,
  prettyErrors: false,
  keepSourceTokens: false,
  logLevel: 'silent',
  version: '1.2',
  schema: 'core',
  merge: false,
  resolveKnownTags: false,
} as const;

class EnoughProblems extends Error {}

class Reading implements ReadYaml {
  readonly documents: SourceDocument[] = [];
  readonly problems: Problem[] = [];
  code: DocumentErrorCode = 'BULWARK_DOCUMENT_SYNTAX';
  /** Documents the parser has given, and documents the composer has; the composer is one behind. */
  begun = 0;
  private taken = 0;

  constructor(
    private readonly lines: LineCounter,
    private readonly source: string,
  ) {}

  readonly onSyntax: SyntaxHandler = (where, code, message) => {
    this.add([
      syntaxProblem({ code, message, offset: offsetOf(where) }, this.place(this.begun), this.lineAt),
    ]);
  };

  take(parsed: Document.Parsed): void {
    this.taken += 1;
    if (this.taken > 10 * MAX_DOCUMENTS) throw tooManyDocuments(this.source);
    const before = this.problems.length;
    const errors: readonly YAMLError[] = [...parsed.errors, ...parsed.warnings].slice(0, MAX_LISTED);
    this.add(
      errors.map(({ code, message, pos }) =>
        syntaxProblem({ code, message, offset: pos[0] }, this.place(this.taken), this.lineAt),
      ),
    );
    // Nothing is given when anything is wrong, so after a fault documents are only checked.
    if (this.problems.length === before && parsed.contents !== null) this.read(parsed.contents);
  }

  private read(contents: ParsedNode): void {
    const values = new YamlValues({ place: this.place(this.taken), lineAt: this.lineAt });
    const value = values.read(contents);
    // An empty document is none.
    if (value === null && values.problems.length === 0) return;
    if (values.tooMany) this.code = 'BULWARK_DOCUMENT_TOO_MANY';
    const at = { ...this.place(this.taken), line: this.lineAt(contents.range[0]) };
    if (this.documents.length >= MAX_DOCUMENTS) throw tooManyDocuments(this.source);
    this.add(values.problems);
    this.documents.push({ at, value, lineOf: (path: Path) => values.lineOf(path) });
  }

  private add(problems: readonly Problem[]): void {
    this.problems.push(...problems.slice(0, MAX_LISTED - this.problems.length));
    if (this.problems.length >= MAX_LISTED) throw new EnoughProblems();
  }

  private place(number: number): ProblemPlace {
    return { source: this.source, document: Math.max(1, number) };
  }

  private readonly lineAt = (offset: number): number => this.lines.linePos(offset).line;
}

/** The parser's tokens; refuses nesting while it is built, long before anything recursive sees it. */
function* boundedTokens(
  text: string,
  { lines, source }: { readonly lines: LineCounter; readonly source: string },
): ReturnType<Parser['parse']> {
  const parser = new Parser(lines.addNewLine);
  // As in Parser.parse: the first line begins at the text's first character.
  lines.addNewLine(0);
  let left = MAX_TOKENS;
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    left -= 1;
    if (left < 0) {
      const message = `the text falls into more than ${MAX_TOKENS} words, signs and line ends; split it`;
      throw failedText('BULWARK_DOCUMENT_TOO_MANY', { source, message, allowed: `at most ${MAX_TOKENS}` });
    }
    // The stack holds the document, and one entry for each open map or list and for a scalar within.
    if (parser.stack.length > MAX_DEPTH + 2) {
      const message = `nested deeper than ${MAX_DEPTH} levels`;
      const allowed = `at most ${MAX_DEPTH} levels`;
      const { line } = lines.linePos(parser.offset);
      throw failedText('BULWARK_DOCUMENT_TOO_DEEP', { source, message, allowed, line });
    }
  }
  yield* parser.end();
}

/** The composer names places by offset, by [start, end], or by a token. */
function offsetOf(where: unknown): number {
  const first: unknown = Array.isArray(where) ? where[0] : where;
  const offset = typeof first === 'object' && first !== null && 'offset' in first ? first.offset : first;
  return typeof offset === 'number' ? offset : 0;
}

function syntaxProblem(
  error: { readonly code: string; readonly message: string; readonly offset: number },
  place: ProblemPlace,
  lineAt: (offset: number) => number,
): Problem {
  const tag = error.code === 'TAG_RESOLVE_FAILED';
  const message = tag ? 'tags such as !!binary are not supported' : lowerFirst(clip(error.message, 200));
  return problem([], 'invalid', {
    message: `not valid YAML: ${message}`,
    at: { ...place, line: lineAt(error.offset) },
  });
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
