/** Heads of answers by the grammar of RFC 9112, refused where two programs could read them differently. */

/** How the body of an answer ends. */
export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  /** It ends where the connection ends. */
  | { readonly kind: 'close' };

export interface AnswerHead {
  /** 100 to 999. */
  readonly status: number;
  /** Name and value pairs, flat, in latin1, as they came but for white space around values. */
  readonly headers: readonly string[];
  readonly framing: Framing;
  /** Whether the sender means to take another request on this connection. */
  readonly persistent: boolean;
  /** Whole seconds the sender keeps an idle connection, where it says so. */
  readonly idleSeconds: number | undefined;
}

/** Why an answer was refused; the text says it to a person. */
export class BadAnswerError extends Error {
  override readonly name = 'BadAnswerError';
  readonly code = 'BAD_ANSWER';
}

/** Fields in one head or trailer section. */
const MAX_FIELDS = 500;

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const PROTOCOL = Buffer.from('HTTP/1.');
const CR = 0x0d;
const LF = 0x0a;
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Anything else is a control character: RFC 9110 §5.5. */
const NO_FIELD_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
const LENGTH = /^\d{1,15}$/;

const NONE: Framing = { kind: 'none' };
const CHUNKED: Framing = { kind: 'chunked' };
const CLOSE: Framing = { kind: 'close' };

/** `text` is all before the empty line. Throws BadAnswerError. */
export function parseAnswerHead(text: string, toHead: boolean): AnswerHead {
  const lineEnd = text.indexOf('\r\n');
  const match = STATUS_LINE.exec(lineEnd < 0 ? text : text.slice(0, lineEnd));
  if (match === null) throw badStatusLine();
  const minor = match[1] === '1' ? 1 : 0;
  const status = Number(match[2]);
  const headers = lineEnd < 0 ? [] : parseFields(text, lineEnd + 2);
  const fields = readFramingFields(headers, minor);
  return {
    status,
    headers,
    framing: toHead || status < 200 || status === 204 || status === 304 ? NONE : framingOf(fields),
    persistent: minor === 1 ? !fields.close : fields.keepAlive && !fields.close,
    idleSeconds: fields.idleSeconds,
  };
}

/**
 * What is wrong with a head already, of which more may come; it was asked before about the bytes up to `from`.
 * Undefined = it may still become one. The first fault by its place, so that it is the same whatever pieces came.
 */
export function earlyFault(begun: Buffer, from: number): BadAnswerError | undefined {
  const first = Math.min(begun.length, PROTOCOL.length);
  if (begun.compare(PROTOCOL, 0, first, 0, first) !== 0) {
    return new BadAnswerError('it does not begin with a status line of HTTP/1');
  }
  for (let at = begun.indexOf(LF, from); at >= 0; at = begun.indexOf(LF, at + 1)) {
    if (begun[at - 1] !== CR) return new BadAnswerError('a line of its head ends with LF instead of CRLF');
    const isStatusLine = begun.indexOf(LF) === at;
    if (isStatusLine && !STATUS_LINE.test(begun.toString('latin1', 0, at - 1))) return badStatusLine();
  }
  return undefined;
}

function badStatusLine(): BadAnswerError {
  return new BadAnswerError('the status line is malformed');
}

/** Field lines from `at` on, the last one without its line end. Throws BadAnswerError. */
export function parseFields(text: string, at: number): string[] {
  const fields: string[] = [];
  while (at < text.length) {
    let end = text.indexOf('\r\n', at);
    if (end < 0) end = text.length;
    const colon = text.indexOf(':', at);
    const name = text.slice(at, Math.max(at, colon));
    // White space before the colon and folded lines end here too.
    if (colon > end || !TOKEN.test(name)) throw new BadAnswerError('a field name is malformed');
    const value = trimmed(text, colon + 1, end);
    if (NO_FIELD_VALUE.test(value)) {
      throw new BadAnswerError(`the value of ${name} holds a control character`);
    }
    fields.push(name, value);
    if (fields.length > 2 * MAX_FIELDS) throw new BadAnswerError(`there are more than ${MAX_FIELDS} fields`);
    at = end + 2;
  }
  return fields;
}

interface FramingFields {
  length: number | undefined;
  chunked: boolean;
  close: boolean;
  keepAlive: boolean;
  idleSeconds: number | undefined;
}

function readFramingFields(headers: readonly string[], minor: 0 | 1): FramingFields {
  const found: FramingFields = {
    ...{ length: undefined, chunked: false, close: false, keepAlive: false, idleSeconds: undefined },
  };
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index] ?? '';
    // Most names are of another length, and need no look at their letters.
    if (name.length !== 10 && name.length !== 14 && name.length !== 17) continue;
    readFramingField(found, name.toLowerCase(), headers[index + 1] ?? '');
  }
  if (found.chunked && (minor === 0 || found.length !== undefined)) {
    throw new BadAnswerError(
      minor === 0
        ? 'HTTP/1.0 has no Transfer-Encoding'
        : 'Content-Length and Transfer-Encoding contradict each other',
    );
  }
  return found;
}

function readFramingField(found: FramingFields, name: string, value: string): void {
  switch (name) {
    case 'content-length':
      if (found.length !== undefined) throw new BadAnswerError('there are two Content-Length fields');
      if (!LENGTH.test(value)) throw new BadAnswerError('Content-Length is no number of bytes');
      found.length = Number(value);
      return;
    case 'transfer-encoding':
      if (found.chunked || value.toLowerCase() !== 'chunked') {
        throw new BadAnswerError('Transfer-Encoding is not just "chunked"');
      }
      found.chunked = true;
      return;
    case 'connection':
      for (const option of value.toLowerCase().split(',')) {
        const word = trimmed(option, 0, option.length);
        if (word === 'close') found.close = true;
        else if (word === 'keep-alive') found.keepAlive = true;
      }
      return;
    case 'keep-alive': {
      const seconds = /(?:^|[,; \t])timeout=(\d{1,6})(?:$|[,; \t])/i.exec(value)?.[1];
      if (seconds !== undefined) found.idleSeconds = Number(seconds);
      return;
    }
  }
}

function framingOf({ length, chunked }: FramingFields): Framing {
  if (chunked) return CHUNKED;
  return length === undefined ? CLOSE : { kind: 'length', bytes: length };
}

/** Without spaces and tabs around it. Not `trim`, which would take latin1's no-break space too. */
function trimmed(text: string, from: number, to: number): string {
  while (from < to && isBlank(text.charCodeAt(from))) from += 1;
  while (to > from && isBlank(text.charCodeAt(to - 1))) to -= 1;
  return text.slice(from, to);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
