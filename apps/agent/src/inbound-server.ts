import { AcceptedWork } from './accepted-work.js';
import type { CallTarget, Refused } from './call-target.js';
import { GrpcInbound } from './h2/grpc-inbound.js';
import { ProtocolSwitch } from './h2/protocol-switch.js';
import { HttpListener, writeRefused, type IncomingCall } from './http-listener.js';
import { InboundCall, type InboundCallEnd } from './inbound-call.js';
import { checkRequest } from './request-check.js';
import type { TraceJoin } from './trace-join.js';
import type { TrustedPeers } from './trusted-peers.js';
import { UpstreamClient } from './upstream-client.js';

export interface InboundServerOptions {
  /** The service itself; http. Its path stands before that of each call. */
  readonly app: URL;
  /** The service's name, for problems. */
  readonly service: string;
  /** Distinguishes this side in Via; a request that carries it already is a loop. */
  readonly pseudonym: string;
  readonly join: TraceJoin;
  /** Callers whose marks are believed, and who are told marks. */
  readonly trustedPeers: TrustedPeers;
  readonly onEnd: (end: InboundCallEnd) => void;
  /** The marks of a caller are not believed. */
  readonly onStripped: (remoteAddress: string | undefined) => void;
}

/** The inbound side: an ordinary reverse proxy before the service. No policy applies here. */
export class InboundServer {
  /** Calls of this side, whatever protocol they come by. */
  readonly work = new AcceptedWork();
  /** HTTP/1.1 and cleartext HTTP/2 on one port. */
  readonly door: ProtocolSwitch;
  readonly #listener: HttpListener;
  readonly #grpc: GrpcInbound;
  readonly #options: InboundServerOptions;
  readonly #client = new UpstreamClient();

  constructor(options: InboundServerOptions) {
    this.#options = options;
    const { work } = this;
    const trusts = (address: string | undefined): boolean => options.trustedPeers.trusts(address);
    this.#grpc = new GrpcInbound({ ...options, work, trusts });
    this.#listener = new HttpListener({
      work,
      trusts,
      answer: (call) => this.#answer(call),
      // Another instance may take the call at once, so no time is named.
      refusalMarks: (reason, trusted) => (trusted ? { 'Bulwark-Rejected': reason } : {}),
      noTunnel: () => 'This is the inbound side of a sidecar, and no proxy for other places.',
    });
    this.door = new ProtocolSwitch({ http1: this.#listener.server, grpc: this.#grpc.listener });
  }

  begin(): void {
    this.work.begin();
  }

  /** No new calls from now on; gRPC callers are asked to go elsewhere. */
  stop(): void {
    this.work.stop();
    this.#grpc.listener.goAway();
  }

  /** Cuts everything that is still under way. */
  async close(): Promise<void> {
    this.#client.close();
    this.#grpc.close();
    await Promise.all([this.door.close(), this.#listener.close()]);
  }

  #answer(call: IncomingCall): void {
    const { request, response } = call;
    const target = checkRequest(request, this.#options.pseudonym) ?? this.#target(call);
    if (target.kind === 'refused') return writeRefused(response, target);
    const { service, pseudonym, join, onEnd, onStripped } = this.#options;
    const inbound = { ...call, service, target: target.target, join, onEnd, onStripped };
    new InboundCall({ ...inbound, upstreams: this.#client, via: `1.1 ${pseudonym}` })
      .run()
      .catch(() => response.destroy());
  }

  /** Always the service; the request's own target says which of its resources. */
  #target({ request }: IncomingCall): { kind: 'target'; target: CallTarget } | Refused {
    const { app, service } = this.#options;
    const raw = request.url ?? '/';
    const absolute = raw.startsWith('/') || raw === '*' ? undefined : URL.parse(raw);
    if (absolute === null || (absolute !== undefined && absolute.protocol !== 'http:')) {
      const detail = 'The target is neither a path nor an http URL.';
      return { kind: 'refused', status: 400, word: 'bad-target', detail };
    }
    // RFC 9112 §3.2.2: the authority of an absolute target takes the place of Host.
    const authority = absolute?.host ?? request.headers.host ?? app.host;
    const path = absolute === undefined ? raw : `${absolute.pathname}${absolute.search}`;
    const target: CallTarget = {
      service,
      mapped: true,
      secure: false,
      host: app.hostname.replace(/^\[|\]$/g, ''),
      port: Number(app.port || '80'),
      authority,
      path,
      basePath: app.pathname.replace(/\/+$/, ''),
      url: `http://${authority}${path}`,
      operation: `${request.method ?? 'GET'} ${path.replace(/\?.*$/s, '')}`,
    };
    return { kind: 'target', target };
  }
}
