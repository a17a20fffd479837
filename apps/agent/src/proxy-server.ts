import type { Bulwark } from '@bulwark/agent';
import { AcceptedWork } from './accepted-work.js';
import { resolveTarget, type CallTarget, type TargetRules } from './call-target.js';
import { GrpcProxy } from './h2/grpc-proxy.js';
import { ProtocolSwitch } from './h2/protocol-switch.js';
import { HttpListener, writeRefused, type IncomingCall } from './http-listener.js';
import { isLoopbackPeer } from './loopback.js';
import { ProxiedCall } from './proxied-call.js';
import { outcomeOf, type ProxiedCallEnd } from './proxied-call-end.js';
import { readRequestBody } from './request-body.js';
import { checkRequest } from './request-check.js';
import type { TraceJoin } from './trace-join.js';
import { traceOf } from './traceparent.js';
import { inheritMarks, readMarks } from './travelling-marks.js';
import type { TrustedPeers } from './trusted-peers.js';
import { UpstreamClient } from './upstream-client.js';

export interface ProxyOptions {
  readonly upstreams: ReadonlyMap<string, URL>;
  readonly isSelf: TargetRules['isSelf'];
  /** Distinguishes this proxy in Via; a request that carries it already is a loop. */
  readonly pseudonym: string;
  /** Undefined = there is no inbound side, so no call belongs to another. */
  readonly join: TraceJoin | undefined;
  /** Upstreams whose answers' marks are believed and relayed, and callers beyond loopback. */
  readonly trustedPeers: TrustedPeers;
  readonly onEnd: (end: ProxiedCallEnd) => void;
  /** The marks of an upstream's answer are not believed. */
  readonly onStripped: (remoteAddress: string | undefined) => void;
}

/** The outbound side: an ordinary HTTP proxy whose calls go through the guards. */
export class ProxyServer {
  /** Calls of this side, whatever protocol they come by. */
  readonly work = new AcceptedWork();
  /** HTTP/1.1 and cleartext HTTP/2 on one port. */
  readonly door: ProtocolSwitch;
  readonly #listener: HttpListener;
  readonly #grpc: GrpcProxy;
  readonly #options: ProxyOptions;
  readonly #client = new UpstreamClient();
  #bulwark: Bulwark | undefined;

  constructor(options: ProxyOptions) {
    this.#options = options;
    // The caller is the own service, beside this process.
    const trusts = (address: string | undefined): boolean =>
      isLoopbackPeer(address) || options.trustedPeers.trusts(address);
    const { work } = this;
    this.#grpc = new GrpcProxy({ ...options, work, trusts, bulwark: () => this.#bulwark });
    this.#listener = new HttpListener({
      work,
      trusts,
      answer: (call) => this.#answer(call),
      refusalMarks: (reason) => ({ 'Retry-After': '1', 'Bulwark-Rejected': reason }),
      noTunnel: (target) =>
        `CONNECT ${target} would hide the calls from their guards. Call http://NAME/ through the proxy and map NAME to an https URL with --upstream.`,
    });
    this.door = new ProtocolSwitch({ http1: this.#listener.server, grpc: this.#grpc.listener });
  }

  /** From now on calls are guarded; until then they are answered "starting". */
  begin(bulwark: Bulwark): void {
    this.#bulwark = bulwark;
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
    const resolved = checkRequest(request, this.#options.pseudonym) ?? resolveTarget(request, this.#options);
    if (resolved.kind === 'refused') return writeRefused(response, resolved);
    this.#proxy(call, resolved.target).catch(() => response.destroy());
  }

  async #proxy(call: IncomingCall, target: CallTarget): Promise<void> {
    const { request, response, expectsContinue } = call;
    const { pseudonym, join, trustedPeers, onStripped } = this.#options;
    const bulwark = this.#bulwark;
    if (bulwark === undefined) throw new Error('a call was taken on before policies were known');
    const beganMs = performance.now();
    const gone = new AbortController();
    response.once('close', () => {
      if (!response.writableFinished) gone.abort(new Error('the caller went away'));
    });
    const own = readMarks(request, call.trusted);
    const trace = traceOf(request.headers['traceparent']);
    // Before the body is read: meanwhile the inbound call may end, and it is still the one this was made for.
    const inbound = join?.find(trace);
    const body = await readRequestBody(request, response, expectsContinue);
    const result = await new ProxiedCall({
      request,
      response,
      target,
      body,
      plan: bulwark.plan(target.service, target.operation),
      upstreams: this.#client,
      via: `1.1 ${pseudonym}`,
      traceId: trace.traceId,
      signal: gone.signal,
      marks: inheritMarks(own, beganMs, inbound, performance.now()),
      believes: (address) => trustedPeers.trusts(address),
      onStripped,
      ...(trace.made !== undefined && { traceparent: trace.made }),
      ...(inbound !== undefined && { onTold: inbound.tell }),
    }).run();
    this.#options.onEnd({
      service: target.service,
      outcome: outcomeOf(result),
      seconds: (performance.now() - beganMs) / 1_000,
    });
  }
}
