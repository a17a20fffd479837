import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CallerPace } from './caller-pace.js';
import { streamUpload } from './stream-upload.js';
import type { UpstreamBody } from './upstream/exchange.js';

/** Up to here a body is kept so that it can be sent again; a larger or unannounced one can be sent once. */
export const REPLAY_MAX_BYTES = 64 * 1024;

/** The body of a proxied request. */
export interface RequestBody {
  /** False: it can be sent only once, so the call gets one attempt. */
  readonly replayable: boolean;
  /** Sent in chunks; else by the caller's Content-Length. */
  readonly chunked: boolean;
  /** `pace` hears when the caller holds the body up. */
  forUpstream(pace: CallerPace): UpstreamBody;
}

const EMPTY = whole(Buffer.alloc(0));

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
    return whole(Buffer.concat(chunks));
  }
  const chunked = coding !== undefined;
  return {
    replayable: false,
    chunked,
    forUpstream: (pace) => ({
      kind: 'stream',
      chunked,
      start: (upload) => {
        if (expectsContinue) response.writeContinue();
        return streamUpload(request, upload, pace);
      },
    }),
  };
}

function whole(bytes: Buffer): RequestBody {
  const body: UpstreamBody = { kind: 'whole', bytes };
  return { replayable: true, chunked: false, forUpstream: () => body };
}
