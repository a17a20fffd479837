import {
  Agent as HttpAgent,
  request as httpRequest,
  type ClientRequest,
  type IncomingMessage,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { CallTarget } from './call-target.js';

export interface UpstreamRequest {
  readonly target: CallTarget;
  readonly method: string;
  /** Flat name and value pairs; Host included. */
  readonly headers: readonly string[];
  readonly signal: AbortSignal;
  /** Whether the request may be sent a second time when a kept connection turns out to be closed. */
  readonly repeatable: boolean;
  /** Sends the body and ends the request. */
  readonly send: (request: ClientRequest) => void;
}

const OPTIONS = {
  keepAlive: true,
  // Limits are the policies' business: bulkheads. A pool that queues by itself would hide from them.
  maxSockets: Infinity,
  maxFreeSockets: 256,
  // Below what servers commonly keep an idle connection, so that a request rarely meets one just closed.
  timeout: 4_000,
} as const;

/** Connections to upstreams, kept between calls. */
export class UpstreamClient {
  readonly #http = new HttpAgent(OPTIONS);
  readonly #https = new HttpsAgent(OPTIONS);

  /** Resolves with the head of the answer; rejects with the transport's error or the signal's reason. */
  open(call: UpstreamRequest): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = this.#start(call);
      request.setNoDelay(true);
      request.once('response', resolve);
      request.on('error', (error: NodeJS.ErrnoException) => {
        // The upstream closed an idle connection just as this request took it: no fault of either.
        const stale = request.reusedSocket && error.code === 'ECONNRESET' && !call.signal.aborted;
        if (stale && call.repeatable) resolve(this.open({ ...call, repeatable: false }));
        else reject(error);
      });
      call.send(request);
    });
  }

  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  #start({ target, method, headers, signal }: UpstreamRequest): ClientRequest {
    const options = {
      host: target.host,
      port: target.port,
      method,
      path: target.path.startsWith('/') ? `${target.basePath}${target.path}` : target.path,
      headers: [...headers],
      signal,
      // Nothing is added that the caller did not send.
      setHost: false,
    };
    return target.secure
      ? httpsRequest({ ...options, agent: this.#https, servername: target.host })
      : httpRequest({ ...options, agent: this.#http });
  }
}
