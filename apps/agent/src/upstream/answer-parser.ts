import { type AnswerHead, BadAnswerError, earlyFault, parseAnswerHead, parseFields } from './answer-head.js';

/** Hears an answer as it is read. */
export interface AnswerSink {
  /** An interim answer (1xx), before the answer itself. Absent = nobody wants to hear of them. */
  interim?(head: AnswerHead): void;
  /** The head of the answer, once. */
  head(head: AnswerHead): void;
  /** The body, in pieces that are never empty; they are parts of what was pushed, not copies. */
  data(chunk: Buffer): void;
}

/** "more": push again; "done": the answer is complete, and `leftover` tells what followed it. */
export type ParseProgress = 'more' | 'done' | BadAnswerError;

const HEAD_MAX_BYTES = 32 * 1024;
const CHUNK_LINE_MAX_BYTES = 1024;
/** Chunk extensions of one answer: they say nothing here, and must not be a way to send for ever. */
const EXTENSIONS_MAX_BYTES = 16 * 1024;
const MAX_INTERIM = 16;

/** RFC 9112 §7.1, without the white space that it calls bad; the size is at most 2^48. */
const CHUNK_LINE =
  /^([0-9A-Fa-f]{1,12})((?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"[\t\x20!\x23-\x5b\x5d-\x7e]*"))?)*)$/;

const CRLF = Buffer.from('\r\n');
const HEAD_END = Buffer.from('\r\n\r\n');
const CR = 0x0d;
const LF = 0x0a;

/**
 * Reads one answer from any number of pieces, however they are cut. Strict: what it takes, other readers of HTTP/1
 * take for the same answer. Holds at most one section (head, chunk line, trailers) in memory; bodies pass through.
 */
export class AnswerParser {
  #state: 'head' | 'length' | 'chunk-line' | 'chunk' | 'chunk-end' | 'trailers' | 'close' | 'done' = 'head';
  #toHead = false;
  #interim = 0;
  /** Of the body or the chunk, still to come. */
  #left = 0;
  #extensionBytes = 0;
  readonly #section = new Section();
  readonly #trailerLines: string[] = [];
  #trailerBytes = 0;
  #stopped = false;

  /** Trailer fields, flat; complete when the answer is. */
  trailers: readonly string[] = NO_FIELDS;
  /** Bytes after the end of the answer, in the last piece. */
  leftover = 0;

  /** For the next answer. `toHead`: to a HEAD request, so it has no body. */
  reset(toHead: boolean): void {
    this.#state = 'head';
    this.#toHead = toHead;
    this.#interim = 0;
    this.#extensionBytes = 0;
    this.#section.clear();
    this.#trailerLines.length = 0;
    this.#trailerBytes = 0;
    this.#stopped = false;
    this.trailers = NO_FIELDS;
    this.leftover = 0;
  }

  /** Nothing more is told from here on; for a sink that wants no more, also within its own call. */
  stop(): void {
    this.#stopped = true;
  }

  /** Reads a piece. After "done" or a fault only `reset` may follow. */
  push(piece: Buffer, sink: AnswerSink): ParseProgress {
    try {
      return this.#read(piece, sink);
    } catch (error) {
      if (error instanceof BadAnswerError) return error;
      throw error;
    }
  }

  /** The connection ended. True: that is how this answer ends. */
  finish(): boolean {
    return this.#state === 'close';
  }

  #read(piece: Buffer, sink: AnswerSink): ParseProgress {
    let at = 0;
    while (!this.#stopped) {
      if (this.#state === 'done') {
        this.leftover = piece.length - at;
        return 'done';
      }
      if (at >= piece.length) return 'more';
      at = this.#step(piece, at, sink);
    }
    return 'more';
  }

  /** Takes what it can in the present state; answers up to where. */
  #step(piece: Buffer, at: number, sink: AnswerSink): number {
    switch (this.#state) {
      case 'head':
        return this.#readHead(piece, at, sink);
      case 'length':
      case 'chunk': {
        const end = Math.min(piece.length, at + this.#left);
        this.#left -= end - at;
        if (this.#left === 0) this.#state = this.#state === 'length' ? 'done' : 'chunk-end';
        sink.data(at === 0 && end === piece.length ? piece : piece.subarray(at, end));
        return end;
      }
      case 'close':
        sink.data(at === 0 ? piece : piece.subarray(at));
        return piece.length;
      case 'chunk-end':
        return this.#readChunkEnd(piece, at);
      case 'chunk-line':
        return this.#readChunkLine(piece, at);
      case 'trailers':
        return this.#readTrailer(piece, at);
      case 'done':
        return at;
    }
  }

  #readHead(piece: Buffer, at: number, sink: AnswerSink): number {
    const before = this.#section.begun.length;
    const end = this.#section.read(piece, at, HEAD_END, HEAD_MAX_BYTES);
    if (end < 0) {
      // What can be no head any more is refused now: its sender may wait for ever with the connection open.
      const fault = earlyFault(this.#section.begun, before);
      if (fault !== undefined) throw fault;
      return this.#goOn(piece, HEAD_MAX_BYTES + HEAD_END.length);
    }
    const head = this.#parseHead(this.#section.take());
    if (head.status === 101) throw new BadAnswerError('101 switches to a protocol that nobody asked for');
    if (head.status < 200) {
      if (!head.persistent) throw new BadAnswerError('an interim answer ends the connection');
      this.#interim += 1;
      if (this.#interim > MAX_INTERIM) throw new BadAnswerError('there are too many interim answers');
      sink.interim?.(head);
      return end;
    }
    const { framing } = head;
    switch (framing.kind) {
      case 'none':
        this.#state = 'done';
        break;
      case 'length':
        this.#left = framing.bytes;
        this.#state = framing.bytes === 0 ? 'done' : 'length';
        break;
      case 'chunked':
        this.#state = 'chunk-line';
        break;
      case 'close':
        this.#state = 'close';
    }
    sink.head(head);
    return end;
  }

  #parseHead(text: string): AnswerHead {
    try {
      return parseAnswerHead(text, this.#toHead);
    } catch (error) {
      // Told as it is told of a head that comes in pieces.
      throw earlyFault(Buffer.from(`${text}\r\n`, 'latin1'), 0) ?? error;
    }
  }

  /** The section goes on in the next piece. Throws when it is `maxBytes` long already. */
  #goOn(piece: Buffer, maxBytes: number): number {
    if (this.#section.begun.length >= maxBytes) throw new BadAnswerError('a part of the answer is too long');
    return piece.length;
  }

  #readChunkLine(piece: Buffer, at: number): number {
    const end = this.#section.read(piece, at, CRLF, CHUNK_LINE_MAX_BYTES);
    if (end < 0) return this.#goOn(piece, CHUNK_LINE_MAX_BYTES + CRLF.length);
    const match = CHUNK_LINE.exec(this.#section.take());
    if (match === null) throw new BadAnswerError('a chunk does not begin with its size');
    this.#extensionBytes += match[2]?.length ?? 0;
    if (this.#extensionBytes > EXTENSIONS_MAX_BYTES) {
      throw new BadAnswerError('there are too many chunk extensions');
    }
    this.#left = Number.parseInt(match[1] ?? '', 16);
    this.#state = this.#left === 0 ? 'trailers' : 'chunk';
    return end;
  }

  /** The line end after a chunk's data; `#left` counts up to 1 between its two bytes. */
  #readChunkEnd(piece: Buffer, at: number): number {
    const wanted = this.#left === 0 ? CR : LF;
    if (piece[at] !== wanted) throw new BadAnswerError('a chunk is longer than its size says');
    this.#left = wanted === CR ? 1 : 0;
    if (wanted === LF) this.#state = 'chunk-line';
    return at + 1;
  }

  #readTrailer(piece: Buffer, at: number): number {
    const maxBytes = HEAD_MAX_BYTES - this.#trailerBytes;
    const end = this.#section.read(piece, at, CRLF, maxBytes);
    if (end < 0) return this.#goOn(piece, maxBytes + CRLF.length);
    const line = this.#section.take();
    if (line === '') {
      this.#state = 'done';
      if (this.#trailerLines.length > 0) this.trailers = parseFields(this.#trailerLines.join('\r\n'), 0);
      return end;
    }
    this.#trailerBytes += line.length + CRLF.length;
    this.#trailerLines.push(line);
    return end;
  }
}

const NO_FIELDS: readonly string[] = [];
const NO_BYTES = Buffer.alloc(0);
const KEPT_MAX_BYTES = 4 * 1024;

/** What came of a section so far. */
class Section {
  #kept = NO_BYTES;
  #length = 0;
  #text = '';

  /** What came of it, while its end has not. Good until the next call. */
  get begun(): Buffer {
    return this.#kept.subarray(0, this.#length);
  }

  clear(): void {
    this.#length = 0;
    // A connection lives long, and long heads are rare.
    if (this.#kept.length > KEPT_MAX_BYTES) this.#kept = NO_BYTES;
    this.#text = '';
  }

  /**
   * Looks for the end of the section, `mark`, in what came before and this piece from `at` on. Answers where in the
   * piece the section ends, or -1 when it goes on; then no more than `maxBytes` and the mark's length are kept.
   */
  read(piece: Buffer, at: number, mark: Buffer, maxBytes: number): number {
    if (this.#length === 0) {
      const found = piece.indexOf(mark, at);
      if (found >= 0 && found - at <= maxBytes) {
        this.#text = piece.toString('latin1', at, found);
        return found + mark.length;
      }
    }
    const before = this.#length;
    // More than this cannot be part of a section that is not too long.
    const end = Math.min(piece.length, at + maxBytes + mark.length - before);
    this.#keep(piece, at, end);
    const found = this.begun.indexOf(mark, Math.max(0, before - mark.length + 1));
    if (found < 0) return -1;
    this.#text = this.#kept.toString('latin1', 0, found);
    this.#length = 0;
    return at + found + mark.length - before;
  }

  /** The section that was found, without its mark. */
  take(): string {
    const text = this.#text;
    this.#text = '';
    return text;
  }

  #keep(piece: Buffer, from: number, to: number): void {
    const length = this.#length + to - from;
    if (length > this.#kept.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(256, 2 * length));
      this.#kept.copy(larger, 0, 0, this.#length);
      this.#kept = larger;
    }
    piece.copy(this.#kept, this.#length, from, to);
    this.#length = length;
  }
}
