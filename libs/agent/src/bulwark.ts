import type { CompiledPolicy } from '@bulwark/policy';
import { agentId } from '@bulwark/protocol';
import type {
  Attempt,
  CallAdapter,
  CallRequest,
  CallResult,
  EngineEvent,
  Guard,
  Host,
  ValueAdapter,
} from '@bulwark/resilience';
import type { Interceptor, ServerInterceptor } from '@grpc/grpc-js';
import { trace } from '@opentelemetry/api';
import { randomUUID } from 'node:crypto';
import { ArgumentError } from './agent-error.js';
import { agentState, type AgentState, type Readiness } from './agent-state.js';
import type { Bypass } from './bypass.js';
import { CallContext, inherit } from './call-context.js';
import type { CompleteOptions } from './connect-options.js';
import { EventLog } from './event-log.js';
import { ControlLink, type LinkNews } from './control-link.js';
import { grpcInterceptor } from './grpc/grpc-client.js';
import type { GrpcOptions } from './grpc/grpc-options.js';
import {
  grpcServerInterceptor,
  type GrpcServerEnvironment,
  type GrpcServerOptions,
} from './grpc/grpc-server.js';
import type { GrpcEnvironment } from './grpc/prepared-call.js';
import type { CallEnvironment, CallPlan } from './call-plan.js';
import { inCallersContext } from './callers-context.js';
import { callProblems, isCall, type CallOptions } from './call-options.js';
import { settle, standInOf, valueOf } from './call-outcome.js';
import { guardedFetch, type GuardedInit } from './guarded-fetch.js';
import { degradedHeader, joiningLines, type HeaderReader } from './headers.js';
import { plainAdapter } from './judge.js';
import { passThrough } from './pass-through.js';
import { PolicySet } from './policy-set.js';
import type { Snapshot } from './snapshot.js';
import type { SnapshotKeeper } from './snapshot-keeper.js';
import { VerdictInbox } from './verdict-inbox.js';

export interface BulwarkParts {
  readonly options: CompleteOptions;
  readonly host: Host;
  readonly keeper: SnapshotKeeper | undefined;
  readonly initial: Snapshot<CompiledPolicy>;
  /** Wall time of the kept snapshot, Unix milliseconds; undefined = the initial one is not from disk. */
  readonly savedAtUnixMs: number | undefined;
  readonly bypass: Bypass;
  readonly onEvent: ((event: EngineEvent) => void) | undefined;
  /** Called once, when it is closed. */
  readonly release: () => void;
}

/** One agent in one process: the policies in force, their guards, and the link that keeps both up to date. */
export class Bulwark {
  /** Random text, new at each start. */
  readonly incarnation = randomUUID();
  readonly #parts: BulwarkParts;
  readonly #policies: PolicySet;
  readonly #link: ControlLink;
  readonly #context: CallContext;
  readonly #events: EventLog;
  readonly #plainAdapters = new WeakMap<Guard, ValueAdapter<unknown>>();
  #closed: Promise<void> | undefined;

  /** Use `connect`. */
  constructor(parts: BulwarkParts) {
    this.#parts = parts;
    const { host, options, keeper, initial } = parts;
    const inbox = new VerdictInbox();
    this.#context = new CallContext(host.nowMs);
    this.#events = new EventLog({ logger: options.logger, nowMs: host.nowMs, onEvent: parts.onEvent });
    this.#policies = new PolicySet({
      host,
      labels: options.labels,
      inbox,
      onChange: (id, change) => this.#link.changed(id, change),
      onEvent: (event) => this.#events.heard(event),
    });
    this.#policies.swap([...initial.resources.values()].map((resource) => resource.compiled));
    const { incarnation } = this;
    this.#link = new ControlLink({
      options,
      host,
      incarnation,
      policies: this.#policies,
      inbox,
      keeper,
      initial,
    });
  }

  /** "namespace/service/instance". */
  get id(): string {
    return agentId(this.#parts.options);
  }

  /** For `connect`: looks for a control plane, and waits for news of a wanted kind; undefined after `waitMs`. */
  start(wanted: (news: LinkNews) => boolean, waitMs: number): Promise<LinkNews | undefined> {
    const news = this.#link.news(wanted, waitMs);
    this.#link.start();
    return news;
  }

  /**
   * Calls a dependency under the policy that matches, or straight when none does. Answers the value (fresh, remembered
   * or simplified) or throws: `RejectedError`, `DeadlineError`, the caller's own abort reason, or what the last
   * attempt threw; `ArgumentError` when it is no call.
   */
  call<T>(service: string, options: CallOptions<T>, attempt: (attempt: Attempt) => Promise<T>): Promise<T> {
    if (!isCall(service, options, attempt)) {
      return Promise.reject(new ArgumentError(callProblems({ service, options, attempt }), 'bulwark.call'));
    }
    const request: CallRequest =
      options.operation === undefined ? { ...options, operation: '' } : (options as CallRequest);
    const { judge, fallback, onResult } = options;
    const guard = this.#guardFor(service, request.operation);
    // Most calls want a value and nothing else: the engine makes them without a result in between.
    const bare = judge === undefined && fallback === undefined && onResult === undefined;
    if (guard !== undefined && bare && !this.#context.active) {
      return guard.run(request, ownContext(guard, attempt), this.#plainAdapterOf<T>(guard, service));
    }
    return this.#callWhole(
      guard,
      { request, attempt, adapter: plainAdapter<T>(judge) },
      { service, options },
    );
  }

  /** For adapters: how a call ended, never a throw. Marks of the call being answered fill what the request leaves out. */
  execute<T>(
    service: string,
    request: CallRequest,
    attempt: (attempt: Attempt) => Promise<T>,
    adapter: CallAdapter<T>,
  ): Promise<CallResult<T>> {
    return this.#run(this.#guardFor(service, request.operation), { request, attempt, adapter });
  }

  /** For adapters that must know the policy before they can describe the call. */
  plan(service: string, operation: string): CallPlan {
    const found = this.#parts.bypass.passes() ? undefined : this.#policies.match(service, operation);
    const lastGood = found?.policy.guard.fallbacks.find((fallback) => fallback.kind === 'last-good');
    return {
      settings: found?.policy.guard,
      lastGood: lastGood && { varyBy: lastGood.varyBy },
      execute: (request, attempt, adapter) => this.#run(found?.guard, { request, attempt, adapter }),
    };
  }

  /** For adapters of HTTP. */
  readonly environment: CallEnvironment = {
    believes: (host) => this.#believes(host),
    plan: (service, operation) => this.plan(service, operation),
    inherited: () => this.#context.inherited(),
    traceId,
    unixMs: () => Date.now(),
    noteDegraded: (list) => this.#context.noteDegraded(list),
  };

  /** `fetch` under the policies; the service is the URL's host name. Refusals are answers with status 503 or 504. */
  readonly fetch = (input: string | URL | Request, init?: GuardedInit): Promise<Response> =>
    guardedFetch(this.environment, input, init);

  /**
   * An interceptor for grpc-js clients: their calls, streams too, run under the policies. The operation is
   * "pkg.Service/Method"; refusals are statuses with metadata `bulwark-rejected`.
   */
  grpc(options: GrpcOptions = {}): Interceptor {
    return grpcInterceptor(this.#grpcEnvironment, options);
  }

  /** An interceptor for grpc-js servers: `answering` for every call, and the marks of its answer. */
  grpcServer(options: GrpcServerOptions = {}): ServerInterceptor {
    return grpcServerInterceptor(this.#grpcEnvironment, options);
  }

  /**
   * Runs the answering of one call: calls made meanwhile inherit its deadline and attempt number. `read` gives its
   * headers, such as `(name) => request.headers[name]` of node:http; only those of an identified peer may be believed.
   */
  answering<T>(read: HeaderReader, handler: () => T): T {
    return this.#context.run(joiningLines(read), handler);
  }

  /**
   * Headers for the answer within `answering`, to be asked for when its head is written: which levels below were degraded,
   * and whether their retries are used up. Empty when there is nothing to say.
   */
  answerHeaders(): Record<string, string> {
    return this.#context.answerHeaders();
  }

  /**
   * Takes the guards out for `forMs` (0..24 h; 0 ends it): every call passes, under its caller's own deadline and
   * cancellation alone; calls under way end as they began. Logged, and shown in `state()`. A bypass file does the same.
   */
  bypass(forMs: number, reason = ''): void {
    this.#parts.bypass.set(forMs, reason);
  }

  /** Whether calls are guarded as someone decided, and if not, why. */
  readiness(): Readiness {
    return this.state().readiness;
  }

  state(): AgentState {
    const link = this.#link;
    return agentState({
      id: this.id,
      incarnation: this.incarnation,
      nowMs: this.#parts.host.nowMs(),
      nowUnixMs: Date.now(),
      snapshot: link.snapshot,
      stream: link.status(),
      lastContactMs: link.lastContactMs,
      savedAtUnixMs: this.#parts.savedAtUnixMs,
      diskProblem: this.#parts.keeper?.problem,
      refusals: link.refusals,
      policies: this.#policies,
      bypass: this.#parts.bypass.state(),
    });
  }

  /** Sends the last counts and ends the stream. Calls still pass, under the policies in force. Idempotent. */
  close(): Promise<void> {
    this.#parts.bypass.close();
    this.#closed ??= this.#link.close().finally(() => this.#parts.release());
    return this.#closed;
  }

  get #grpcEnvironment(): GrpcEnvironment & GrpcServerEnvironment {
    return {
      ...this.environment,
      answering: (read, handler) => this.answering(read, handler),
      answerHeaders: () => this.answerHeaders(),
      nowMs: this.#parts.host.nowMs,
    };
  }

  /** A function of the user's that throws believes nobody. */
  #believes(host: string): boolean {
    try {
      return this.#parts.options.believes(host);
    } catch {
      return false;
    }
  }

  /** Undefined = the call passes. */
  #guardFor(service: string, operation: string): Guard | undefined {
    return this.#parts.bypass.passes() ? undefined : this.#policies.match(service, operation)?.guard;
  }

  async #callWhole<T>(
    guard: Guard | undefined,
    task: GuardedTask<T>,
    { service, options }: { service: string; options: CallOptions<T> },
  ): Promise<T> {
    const { fallback } = options;
    const stood = fallback === undefined ? {} : standInOf(service, fallback);
    const result = await this.#run(guard, { ...task, adapter: { ...task.adapter, ...stood } });
    this.#events.tell(options.onResult, result);
    if (result.kind === 'degraded' && this.#context.active) {
      this.#context.noteDegraded(degradedHeader(service, result, traceId()));
    }
    return settle(service, result, fallback);
  }

  /** Made once: a guard is of one service. */
  #plainAdapterOf<T>(guard: Guard, service: string): ValueAdapter<T> {
    let adapter = this.#plainAdapters.get(guard);
    if (adapter === undefined) {
      adapter = { ...plainAdapter<unknown>(undefined), conclude: (result) => valueOf(service, result) };
      this.#plainAdapters.set(guard, adapter);
    }
    return adapter as ValueAdapter<T>;
  }

  #run<T>(guard: Guard | undefined, task: GuardedTask<T>): Promise<CallResult<T>> {
    return this.#context.active ? this.#runInherited(guard, task) : this.#runPlain(guard, task);
  }

  #runPlain<T>(guard: Guard | undefined, { request, attempt, adapter }: GuardedTask<T>) {
    if (guard === undefined) return passThrough(this.#parts.host, request, attempt, adapter);
    return guard.call(request, ownContext(guard, attempt), adapter);
  }

  async #runInherited<T>(guard: Guard | undefined, task: GuardedTask<T>): Promise<CallResult<T>> {
    const request = inherit(this.#context.inherited(), task.request);
    const result = await this.#runPlain(guard, { ...task, request });
    const exhausted =
      (result.kind === 'failed' && result.retriesExhausted) ||
      // Without a policy nobody looked at what the answer says.
      (result.kind === 'fresh' && result.policy === undefined && saysNoRetry(task.adapter, result.value));
    if (exhausted) this.#context.noteExhausted();
    return result;
  }
}

interface GuardedTask<T> {
  readonly request: CallRequest;
  readonly attempt: (attempt: Attempt) => Promise<T>;
  readonly adapter: CallAdapter<T>;
}

/** Only where calls wait or are repeated is an attempt ever started by somebody else. */
function ownContext<T>(guard: Guard, attempt: (attempt: Attempt) => Promise<T>) {
  const { retry, bulkhead } = guard.settings;
  return retry === undefined && bulkhead === undefined ? attempt : inCallersContext(attempt);
}

function traceId(): string | undefined {
  return trace.getActiveSpan()?.spanContext().traceId;
}

function saysNoRetry<T>(adapter: CallAdapter<T>, value: T): boolean {
  try {
    return adapter.judge(value).noRetry === true;
  } catch {
    return false;
  }
}
