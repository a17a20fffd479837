import { GRPC_METADATA } from '@bulwark/agent';
import type { AcceptedWork } from '../accepted-work.js';
import type { CallTarget } from '../call-target.js';
import type { InboundCallEnd } from '../inbound-call.js';
import type { TraceJoin } from '../trace-join.js';
import { GrpcListener, refuseCall, type IncomingGrpcCall } from './grpc-listener.js';
import { InboundGrpcCall } from './inbound-grpc-call.js';
import { refuseLoop } from './refused-call.js';
import { UpstreamSessions } from './upstream-sessions.js';

export interface GrpcInboundOptions {
  /** The service itself; it takes gRPC by cleartext HTTP/2. */
  readonly app: URL;
  /** The service's name, for messages. */
  readonly service: string;
  /** Distinguishes this side in Via; a call that carries it already is a loop. */
  readonly pseudonym: string;
  readonly join: TraceJoin;
  /** Of this side, whatever protocols it speaks. */
  readonly work: AcceptedWork;
  /** Callers whose marks are believed, and who are told marks. */
  readonly trusts: (remoteAddress: string | undefined) => boolean;
  readonly onEnd: (end: InboundCallEnd) => void;
  /** The marks of a caller are not believed. */
  readonly onStripped: (remoteAddress: string | undefined) => void;
}

/** gRPC on the inbound side: calls by cleartext HTTP/2 go to the service. */
export class GrpcInbound {
  readonly listener: GrpcListener;
  readonly #options: GrpcInboundOptions;
  readonly #upstreams = new UpstreamSessions();

  constructor(options: GrpcInboundOptions) {
    this.#options = options;
    const { work, trusts } = options;
    this.listener = new GrpcListener({
      work,
      trusts,
      answer: (call) => this.#answer(call),
      // Another instance may take the call at once, so no time is named.
      refusalMarks: (reason, trusted) => (trusted ? { [GRPC_METADATA.rejected]: reason } : {}),
    });
  }

  /** Cuts everything that is still under way. */
  close(): void {
    this.listener.close();
    this.#upstreams.close();
  }

  #answer(call: IncomingGrpcCall): void {
    const { service, join, onEnd, onStripped, pseudonym } = this.#options;
    const loop = refuseLoop(call, pseudonym);
    if (loop !== undefined) return refuseCall(call.stream, loop);
    const target = this.#target(call);
    const upstreams = this.#upstreams;
    const inbound = { call, service, target, join, onEnd, onStripped };
    new InboundGrpcCall({ ...inbound, upstreams, via: `2.0 ${pseudonym}` })
      .run()
      .catch(() => call.stream.destroy());
  }

  #target({ headers }: IncomingGrpcCall): CallTarget {
    const { app, service } = this.#options;
    const path = headers[':path'] ?? '/';
    const authority = headers[':authority'] ?? headers.host ?? app.host;
    return {
      service,
      mapped: true,
      secure: false,
      host: app.hostname.replace(/^\[|\]$/g, ''),
      port: Number(app.port || '80'),
      authority,
      path,
      basePath: app.pathname.replace(/\/+$/, ''),
      url: `http://${authority}${path}`,
      operation: path.slice(1),
    };
  }
}
