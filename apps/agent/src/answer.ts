import { HEADER } from '@bulwark/agent';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { cutOff } from './cut-off.js';
import { endToEnd, withHeaders, type RawHeaders } from './hop-headers.js';

/** An upstream's answer: read whole, or its head with the rest still coming. */
export interface Answer {
  readonly status: number;
  readonly headers: RawHeaders;
  /** What was read. */
  readonly body: Buffer;
  /** The rest; undefined = `body` is everything. */
  readonly rest: IncomingMessage | undefined;
  readonly trailers: RawHeaders;
  /** Whole, small and allowed to be remembered. */
  readonly keep: boolean;
}

/** Of a failing answer at most this is read; it may be thrown away in favour of a retry or a fallback. */
const FAILING_BODY_MAX_BYTES = 64 * 1024;

/** What an answer says of the layers below it: the word of its sender, so only a trusted one's counts. */
const ANSWER_MARKS = [HEADER.retry, HEADER.rejected, HEADER.degraded];

/** End-to-end headers of an answer; those of a sender that is not believed have no marks. */
export function headersOf(message: IncomingMessage, believed: boolean): string[] {
  return endToEnd(message.rawHeaders, believed ? [] : ANSWER_MARKS);
}

/** Reads an answer that may not be the one the caller gets. */
export async function readAnswer(message: IncomingMessage, headers: RawHeaders): Promise<Answer> {
  const head = { status: message.statusCode ?? 502, headers, keep: false };
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of message.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    if (bytes > FAILING_BODY_MAX_BYTES) {
      return { ...head, body: Buffer.concat(chunks), rest: message, trailers: [] };
    }
  }
  return { ...head, body: Buffer.concat(chunks), rest: undefined, trailers: message.rawTrailers };
}

/** Writes a whole answer; `marks` replace headers of the same name. A caller that is gone is no error. */
export function writeAnswer(
  response: ServerResponse,
  answer: Answer,
  marks: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(answer.status, withHeaders(answer.headers, marks));
  if (answer.rest === undefined) {
    if (answer.trailers.length > 0) response.addTrailers(pairs(answer.trailers));
    response.end(answer.body);
    return;
  }
  response.write(answer.body);
  const { rest } = answer;
  rest.on('error', () => cutOff(response));
  rest.pipe(response);
}

/** An answer nobody gets must not keep its connection. */
export function discard(answer: Answer | undefined): void {
  answer?.rest?.destroy();
}

export function pairs(raw: RawHeaders): [string, string][] {
  const found: [string, string][] = [];
  for (let index = 0; index + 1 < raw.length; index += 2)
    found.push([raw[index] ?? '', raw[index + 1] ?? '']);
  return found;
}
