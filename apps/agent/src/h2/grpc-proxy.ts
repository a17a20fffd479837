import { GRPC_METADATA, type Bulwark } from '@bulwark/agent';
import type { AcceptedWork } from '../accepted-work.js';
import { resolveTarget, type CallTarget, type Refused, type TargetRules } from '../call-target.js';
import { outcomeOf, type ProxiedCallEnd } from '../proxied-call-end.js';
import type { TraceJoin } from '../trace-join.js';
import { traceOf } from '../traceparent.js';
import { inheritMarks } from '../travelling-marks.js';
import type { TrustedPeers } from '../trusted-peers.js';
import { GrpcListener, refuseCall, type IncomingGrpcCall } from './grpc-listener.js';
import { readGrpcMarks } from './grpc-marks.js';
import { ProxiedGrpcCall } from './proxied-grpc-call.js';
import { refusalOf, refuseLoop } from './refused-call.js';
import { UpstreamSessions } from './upstream-sessions.js';

export interface GrpcProxyOptions extends TargetRules {
  /** Distinguishes this proxy in Via; a call that carries it already is a loop. */
  readonly pseudonym: string;
  /** Undefined = there is no inbound side, so no call belongs to another. */
  readonly join: TraceJoin | undefined;
  /** Upstreams whose answers' marks are believed and relayed. */
  readonly trustedPeers: TrustedPeers;
  readonly onEnd: (end: ProxiedCallEnd) => void;
  /** The marks of an upstream's answer are not believed. */
  readonly onStripped: (remoteAddress: string | undefined) => void;
  readonly work: AcceptedWork;
  /** Callers whose marks are believed. */
  readonly trusts: (remoteAddress: string | undefined) => boolean;
  /** Undefined = policies are not known yet. */
  readonly bulwark: () => Bulwark | undefined;
}

/** gRPC on the outbound side: calls by cleartext HTTP/2 whose `:authority` names the service go through its guards. */
export class GrpcProxy {
  readonly listener: GrpcListener;
  readonly #options: GrpcProxyOptions;
  readonly #upstreams = new UpstreamSessions();

  constructor(options: GrpcProxyOptions) {
    this.#options = options;
    const { work, trusts } = options;
    this.listener = new GrpcListener({
      work,
      trusts,
      answer: (call) => this.#answer(call),
      refusalMarks: (reason) => ({ [GRPC_METADATA.rejected]: reason, [GRPC_METADATA.pushback]: '1000' }),
    });
  }

  /** Cuts everything that is still under way. */
  close(): void {
    this.listener.close();
    this.#upstreams.close();
  }

  #answer(call: IncomingGrpcCall): void {
    const loop = refuseLoop(call, this.#options.pseudonym);
    if (loop !== undefined) return refuseCall(call.stream, loop);
    const resolved = this.#target(call);
    if (resolved.kind === 'refused') return refuseCall(call.stream, refusalOf(resolved));
    this.#proxy(call, resolved.target).catch(() => call.stream.destroy());
  }

  #target({ headers }: IncomingGrpcCall): { kind: 'target'; target: CallTarget } | Refused {
    const path = headers[':path'] ?? '/';
    const host = headers[':authority'] ?? headers.host ?? '';
    const resolved = resolveTarget({ url: path, headers: { host }, method: 'POST' }, this.#options);
    if (resolved.kind === 'refused') return resolved;
    return { kind: 'target', target: { ...resolved.target, operation: path.slice(1) } };
  }

  async #proxy(call: IncomingGrpcCall, target: CallTarget): Promise<void> {
    const { pseudonym, join, trustedPeers, bulwark: started, onEnd, onStripped } = this.#options;
    const bulwark = started();
    if (bulwark === undefined) throw new Error('a call was taken on before policies were known');
    const beganMs = performance.now();
    const trace = traceOf(call.headers['traceparent']);
    const inbound = join?.find(trace);
    const own = readGrpcMarks(call.headers, call.trusted);
    const result = await new ProxiedGrpcCall({
      call,
      target,
      plan: bulwark.plan(target.service, target.operation),
      upstreams: this.#upstreams,
      via: `2.0 ${pseudonym}`,
      marks: inheritMarks(own, beganMs, inbound, beganMs),
      traceparent: trace.made,
      believes: (address) => trustedPeers.trusts(address),
      onStripped,
      onTold: inbound?.tell,
    }).run();
    onEnd({
      service: target.service,
      outcome: outcomeOf(result),
      seconds: (performance.now() - beganMs) / 1_000,
    });
  }
}
