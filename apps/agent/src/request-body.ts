import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import type { CallerPace } from './caller-pace.js';
import { streamUpload } from './stream-upload.js';

/** Up to here a body is kept so that it can be sent again; a larger or unannounced one can be sent once. */
export const REPLAY_MAX_BYTES = 64 * 1024;

/** The body of a proxied request. */
export interface RequestBody {
  /** False: it can be sent only once, so the call gets one attempt. */
  readonly replayable: boolean;
  /** Framing for the upstream, where it is not the caller's Content-Length. */
  readonly headers: readonly string[];
  /** `pace` hears when the caller holds the body up. */
  send(request: ClientRequest, pace: CallerPace): void;
}

const EMPTY: RequestBody = { replayable: true, headers: [], send: (request) => request.end() };

/** Small bodies are read whole before the call begins: a slow caller must not use up the dependency's time. */
export async function readRequestBody(
  request: IncomingMessage,
  response: ServerResponse,
  expectsContinue: boolean,
): Promise<RequestBody> {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
  if (coding === undefined && (length === undefined || length === '0')) return EMPTY;
  if (coding === undefined && Number(length) <= REPLAY_MAX_BYTES) {
    if (expectsContinue) response.writeContinue();
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    return { replayable: true, headers: [], send: (upstream) => upstream.end(body) };
  }
  return {
    replayable: false,
    headers: coding === undefined ? [] : ['Transfer-Encoding', 'chunked'],
    send: (upstream, pace) => {
      if (expectsContinue) response.writeContinue();
      streamUpload(request, upstream, pace);
    },
  };
}
