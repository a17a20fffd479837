import type { Bulwark } from '@bulwark/agent';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { resolveTarget, type CallTarget, type TargetRules } from './call-target.js';
import { writeProblem } from './problem-answer.js';
import { ProxiedCall } from './proxied-call.js';
import { refuseUnreadable, writeRawProblem } from './raw-problem.js';
import { readRequestBody } from './request-body.js';
import { checkRequest } from './request-check.js';
import { UpstreamClient } from './upstream-client.js';

/** How one proxied call ended, for metrics. */
export interface ProxiedCallEnd {
  readonly service: string;
  readonly outcome: 'ok' | 'ok_degraded' | 'failed' | 'rejected' | 'cancelled';
  readonly seconds: number;
}

export interface ProxyOptions {
  readonly upstreams: ReadonlyMap<string, URL>;
  readonly isSelf: TargetRules['isSelf'];
  /** Distinguishes this proxy in Via; a request that carries it already is a loop. */
  readonly pseudonym: string;
  readonly onEnd: (end: ProxiedCallEnd) => void;
}

export interface DrainCounts {
  readonly accepted: number;
  readonly completed: number;
  readonly refused: number;
  readonly unfinished: number;
}

const OUTCOMES = {
  fresh: 'ok',
  degraded: 'ok_degraded',
  rejected: 'rejected',
  failed: 'failed',
} as const;

/** The outbound side: an ordinary HTTP proxy whose calls go through the guards. */
export class ProxyServer {
  readonly server: Server;
  readonly #options: ProxyOptions;
  readonly #client = new UpstreamClient();
  readonly #open = new Set<ServerResponse>();
  #bulwark: Bulwark | undefined;
  #draining = false;
  #accepted = 0;
  #completed = 0;
  #refused = 0;
  #drained: (() => void) | undefined;

  constructor(options: ProxyOptions) {
    this.#options = options;
    this.server = createServer({
      maxHeaderSize: 32 * 1024,
      headersTimeout: 15_000,
      keepAliveTimeout: 65_000,
      noDelay: true,
      // Checked here, for an answer that explains itself.
      requireHostHeader: false,
    });
    this.server.maxConnections = 20_000;
    this.server.on('request', (request, response) => this.#receive(request, response, false));
    this.server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) =>
      this.#receive(request, response, true),
    );
    this.server.on('connect', (request: IncomingMessage, socket: Duplex) => refuseTunnel(request, socket));
    this.server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
      const begun = [...this.#open].some((response) => response.socket === socket && response.headersSent);
      refuseUnreadable(error, socket, begun);
    });
  }

  get inFlight(): number {
    return this.#open.size;
  }

  /** From now on calls are guarded; until then they are answered "starting". */
  begin(bulwark: Bulwark): void {
    this.#bulwark = bulwark;
  }

  /** Refuses new work, and waits for the accepted at most `withinMs`. Then every connection is closed. */
  async drain(withinMs: number): Promise<DrainCounts> {
    this.#draining = true;
    if (this.#open.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, withinMs);
        this.#drained = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    const counts = this.counts();
    this.#client.close();
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.server.closeAllConnections();
    await closed;
    return counts;
  }

  counts(): DrainCounts {
    return {
      accepted: this.#accepted,
      completed: this.#completed,
      refused: this.#refused,
      unfinished: this.#open.size,
    };
  }

  #receive(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    response.on('error', () => undefined);
    if (this.#draining || this.#bulwark === undefined) return this.#refuse(response);
    this.#accepted += 1;
    this.#open.add(response);
    response.once('close', () => {
      this.#open.delete(response);
      this.#completed += 1;
      if (this.#open.size === 0) this.#drained?.();
    });
    const resolved = checkRequest(request, this.#options.pseudonym) ?? resolveTarget(request, this.#options);
    if (resolved.kind === 'refused') {
      const { status, word, detail } = resolved;
      const title = 'The sidecar cannot make this call';
      const problem = { type: `urn:bulwark:problem:${word}`, title, status, detail, reason: word };
      // What a caller sends after a request that was misunderstood is not to be trusted.
      return writeProblem(response, problem, { Connection: 'close' });
    }
    this.#proxy(this.#bulwark, { request, response, target: resolved.target, expectsContinue }).catch(() =>
      response.destroy(),
    );
  }

  async #proxy(
    bulwark: Bulwark,
    call: {
      request: IncomingMessage;
      response: ServerResponse;
      target: CallTarget;
      expectsContinue: boolean;
    },
  ): Promise<void> {
    const { request, response, target, expectsContinue } = call;
    const beganMs = performance.now();
    const gone = new AbortController();
    response.once('close', () => {
      if (!response.writableFinished) gone.abort(new Error('the caller went away'));
    });
    const body = await readRequestBody(request, response, expectsContinue);
    const result = await new ProxiedCall({
      request,
      response,
      target,
      body,
      plan: bulwark.plan(target.service, target.operation),
      upstreams: this.#client,
      via: `1.1 ${this.#options.pseudonym}`,
      traceId: traceIdOf(request),
      signal: gone.signal,
    }).run();
    const cancelled = result.kind === 'failed' && result.cancelled;
    this.#options.onEnd({
      service: target.service,
      outcome: cancelled ? 'cancelled' : OUTCOMES[result.kind],
      seconds: (performance.now() - beganMs) / 1_000,
    });
  }

  #refuse(response: ServerResponse): void {
    this.#refused += 1;
    const [reason, detail] = this.#draining
      ? ['draining', 'This sidecar is shutting down and takes no new calls.']
      : ['starting', 'This sidecar does not know its policies yet.'];
    const marks = { Connection: 'close', 'Retry-After': '1', 'Bulwark-Rejected': reason };
    writeProblem(
      response,
      {
        type: `urn:bulwark:problem:${reason}`,
        title: 'The sidecar takes no calls now',
        status: 503,
        detail,
        reason,
      },
      marks,
    );
  }
}

function refuseTunnel(request: IncomingMessage, socket: Duplex): void {
  writeRawProblem(socket, {
    status: 501,
    word: 'tunnel',
    title: 'The sidecar makes no tunnels',
    detail: `CONNECT ${request.url ?? ''} would hide the calls from their guards. Call http://NAME/ through the proxy and map NAME to an https URL with --upstream.`,
  });
}

/** The trace id of a W3C traceparent. */
function traceIdOf(request: IncomingMessage): string | undefined {
  const header = request.headers['traceparent'];
  const match = typeof header === 'string' ? /^[0-9a-f]{2}-([0-9a-f]{32})-/.exec(header) : null;
  return match?.[1];
}
