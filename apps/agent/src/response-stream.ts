import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CallerPace } from './caller-pace.js';
import { cutOff } from './cut-off.js';
import { pairs, type Answer } from './answer.js';
import { headerOf, withHeaders, type RawHeaders } from './hop-headers.js';

export interface StreamOptions {
  /** The answer's, as the caller may see them. */
  readonly headers: RawHeaders;
  /** Replaces headers of the same name. */
  readonly marks: Readonly<Record<string, string>>;
  /** Keep a copy of a body up to this many bytes; 0 = none. */
  readonly keepBytes: number;
  /** Hears when the caller does not take what is there. */
  readonly pace: CallerPace;
}

/**
 * Passes an answer on as it comes, and resolves when all of it has been passed on: until then the attempt is under
 * way, its bulkhead slot is held and its timeout runs. Rejects when the upstream breaks off; the caller's connection is
 * then cut, since a half answer must not look like a whole one.
 */
export function streamAnswer(
  message: IncomingMessage,
  response: ServerResponse,
  options: StreamOptions,
): Promise<Answer> {
  const head = { status: message.statusCode ?? 502, headers: options.headers };
  response.writeHead(head.status, withHeaders(head.headers, options.marks));
  let copy: Buffer[] | undefined = options.keepBytes > 0 ? [] : undefined;
  let bytes = 0;
  return new Promise((resolve, reject) => {
    const broken = (error?: Error): void => {
      cutOff(response);
      message.destroy();
      reject(error ?? Object.assign(new Error('the answer broke off'), { code: 'ECONNRESET' }));
    };
    message.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > options.keepBytes) copy = undefined;
      copy?.push(chunk);
      if (response.write(chunk)) return;
      options.pace.hold('download');
      message.pause();
    });
    response.on('drain', () => {
      options.pace.release('download');
      message.resume();
    });
    message.on('error', broken);
    message.on('close', () => {
      if (!message.complete) broken();
    });
    message.on('end', () => {
      // Trailers need the chunked coding; an answer with Content-Length has none.
      if (message.rawTrailers.length > 0 && headerOf(head.headers, 'content-length') === undefined) {
        response.addTrailers(pairs(message.rawTrailers));
      }
      response.end();
      resolve({
        ...head,
        body: copy === undefined ? Buffer.alloc(0) : Buffer.concat(copy),
        rest: undefined,
        trailers: message.rawTrailers,
        keep: copy !== undefined,
      });
    });
  });
}
