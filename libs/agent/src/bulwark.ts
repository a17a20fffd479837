import type { CompiledPolicy } from '@bulwark/policy';
import { agentId, PROTOCOL_LEVEL, type Ack, type Update, type VerdictUpdate } from '@bulwark/protocol';
import type {
  Attempt,
  CallAdapter,
  CallRequest,
  CallResult,
  EngineEvent,
  GateChange,
  Host,
} from '@bulwark/resilience';
import { trace } from '@opentelemetry/api';
import { randomUUID } from 'node:crypto';
import { DeadlineError, RejectedError } from './agent-error.js';
import { agentState, type AgentState, type Readiness } from './agent-state.js';
import { CallContext } from './call-context.js';
import { compileResource } from './compile-resource.js';
import type { CompleteOptions } from './connect-options.js';
import { ControlStream } from './control-stream.js';
import { guardedFetch, type CallPlan, type GuardedInit } from './guarded-fetch.js';
import type { ReadHeader } from './headers.js';
import { plainAdapter } from './judge.js';
import { passThrough } from './pass-through.js';
import { PolicySet } from './policy-set.js';
import type { Refusal } from './refusal.js';
import { Reporter } from './reporter.js';
import { applyUpdate, type Snapshot } from './snapshot.js';
import type { SnapshotKeeper } from './snapshot-keeper.js';
import { breakerKeyId, toFleetVerdict, VerdictInbox } from './verdict-inbox.js';
import { VERSION } from './version.js';

export interface CallOptions<T> {
  /** "GET /v1/recs" or "pkg.Service/Method"; what policies name. Default "". */
  readonly operation?: string;
  /** Upper-case HTTP method; absent = not idempotent, so one attempt unless there is an idempotency key. */
  readonly method?: string;
  readonly signal?: AbortSignal;
  readonly idempotencyKey?: string;
  /** What the caller has left, milliseconds. Default: what the call being answered has left, if it said. */
  readonly deadlineMs?: number;
  /** The caller's attempt number. Default: that of the call being answered. */
  readonly callerAttempt?: number;
  /** Names the answer for last-good; it must name who asks. Absent = not remembered. */
  readonly cacheKey?: string;
  readonly attributes?: Readonly<Record<string, string>>;
  /** What an answer or error means; undefined = the default: an answer is a success, an error a failure. */
  readonly judge?: Parameters<typeof plainAdapter<T>>[0];
  /** Makes a value of the policy's static answer. Absent = a static answer cannot serve this call. */
  readonly fallback?: (fixed: { status: number; body: string; contentType: string }) => T;
  /** Hears how the call ended, for marks and logs. */
  readonly onResult?: (result: CallResult<T>) => void;
}

export interface BulwarkParts {
  readonly options: CompleteOptions;
  readonly host: Host;
  readonly keeper: SnapshotKeeper | undefined;
  readonly initial: Snapshot<CompiledPolicy>;
  /** Wall time of the kept snapshot, Unix milliseconds; undefined = the initial one is not from disk. */
  readonly savedAtUnixMs: number | undefined;
  readonly onEvent: ((event: EngineEvent) => void) | undefined;
}

export type StartEnd =
  | { readonly kind: 'welcome' | 'policies' | 'unreachable' }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

const DEMAND_SILENCE_MS = 1_000;

/** One agent in one process: the policies in force, their guards, and the stream that keeps both up to date. */
export class Bulwark {
  /** Random text, new at each start. */
  readonly incarnation = randomUUID();
  readonly #parts: BulwarkParts;
  readonly #inbox = new VerdictInbox();
  readonly #policies: PolicySet;
  readonly #reporter: Reporter;
  readonly #stream: ControlStream;
  readonly #context: CallContext;
  readonly #rejectedAtMs = new Map<string, number>();
  readonly #waiting = new Set<(end: StartEnd) => void>();
  #snapshot: Snapshot<CompiledPolicy>;
  #lastContactMs: number | undefined;
  #refusals: Readonly<Record<string, string>> = {};
  #hinted = false;
  #closed = false;

  /** Use `connect`. */
  constructor(parts: BulwarkParts) {
    this.#parts = parts;
    const { host, options } = parts;
    this.#context = new CallContext(host.nowMs);
    this.#snapshot = parts.initial;
    this.#policies = new PolicySet({
      host,
      labels: options.labels,
      inbox: this.#inbox,
      onChange: (id, change) => this.#changed(id, change),
      onEvent: (event) => this.#heard(event),
    });
    this.#policies.swap(compiledOf(parts.initial));
    this.#reporter = new Reporter({
      incarnation: this.incarnation,
      host,
      read: (id) => this.#policies.read(id),
      ids: () => this.#policies.ids(),
      send: (report) => this.#stream.sendReport(report),
    });
    this.#stream = new ControlStream({
      addresses: options.addresses,
      logger: options.logger,
      random: host.random,
      handler: {
        hello: () => this.#hello(),
        welcome: ({ slot, serviceAgents }) => {
          this.#contact();
          this.#policies.setSlot(slot);
          this.#policies.setServiceAgents(serviceAgents);
          this.#reporter.connected();
          this.#tell({ kind: 'welcome' });
        },
        update: (update, ack) => void this.#update(update, ack),
        verdicts: (verdicts) => this.#verdicts(verdicts),
        poll: (poll) => {
          this.#contact();
          this.#reporter.poll(poll, breakerKeyId);
        },
        writable: () => this.#reporter.writable(),
        lost: () => {
          this.#reporter.disconnected();
          this.#tell({ kind: 'unreachable' });
        },
        refused: (refusal) => this.#tell({ kind: 'refused', refusal }),
      },
    });
  }

  /** "namespace/service/instance". */
  get id(): string {
    return agentId(this.#parts.options);
  }

  /** For `connect`: begins to look for a control plane. */
  start(): void {
    this.#stream.start();
  }

  /** For `connect`: the next news of the stream, or undefined after `waitMs`. */
  firstNews(wanted: (end: StartEnd) => boolean, waitMs: number): Promise<StartEnd | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => done(undefined), waitMs);
      const listener = (end: StartEnd): void => {
        if (wanted(end)) done(end);
      };
      const done = (end: StartEnd | undefined): void => {
        clearTimeout(timer);
        this.#waiting.delete(listener);
        resolve(end);
      };
      this.#waiting.add(listener);
    });
  }

  /**
   * Calls a dependency under the policy that matches, or straight when none does. Answers the value (fresh, remembered
   * or simplified) or throws: `RejectedError`, `DeadlineError`, the caller's own abort reason, or what the last
   * attempt threw.
   */
  async call<T>(
    service: string,
    options: CallOptions<T>,
    attempt: (attempt: Attempt) => Promise<T>,
  ): Promise<T> {
    const { operation = '', judge, fallback, onResult, ...described } = options;
    const request = { operation, ...described };
    const result = await this.execute(service, request, attempt, plainAdapter<T>(judge));
    onResult?.(result);
    return settle(service, result, fallback);
  }

  /** For adapters: how a call ended, never a throw. Marks of the call being answered fill what the request leaves out. */
  execute<T>(
    service: string,
    request: CallRequest,
    attempt: (attempt: Attempt) => Promise<T>,
    adapter: CallAdapter<T>,
  ): Promise<CallResult<T>> {
    return this.plan(service, request.operation).execute(request, attempt, adapter);
  }

  /** For adapters that must know the policy before they can describe the call. */
  plan(service: string, operation: string): CallPlan {
    const found = this.#policies.match(service, operation);
    const lastGood = found?.policy.guard.fallbacks.find((fallback) => fallback.kind === 'last-good');
    return {
      settings: found?.policy.guard,
      lastGood: lastGood && { varyBy: lastGood.varyBy },
      execute: async (request, attempt, adapter) => {
        const inherited = { ...this.#context.inherited(), ...request };
        const result = await (found === undefined
          ? passThrough(this.#parts.host, inherited, attempt, adapter)
          : found.guard.call(inherited, attempt, adapter));
        if (result.kind === 'failed' && result.retriesExhausted) this.#context.noteExhausted();
        return result;
      },
    };
  }

  /** `fetch` under the policies; the service is the URL's host name. Refusals are answers with status 503 or 504. */
  readonly fetch = (input: string | URL | Request, init?: GuardedInit): Promise<Response> =>
    guardedFetch(
      {
        plan: (service, operation) => this.plan(service, operation),
        inherited: () => this.#context.inherited(),
        traceId: () => trace.getActiveSpan()?.spanContext().traceId,
        unixMs: () => Date.now(),
      },
      input,
      init,
    );

  /**
   * Runs the answering of one call: calls made meanwhile inherit its deadline and attempt number. `read` gives its
   * headers; only those of an identified peer may be believed.
   */
  answering<T>(read: ReadHeader, handler: () => T): T {
    return this.#context.run(read, handler);
  }

  /** Headers for a failing answer within `answering`: tells the caller's layer when retries are used up. */
  answerHeaders(): Record<string, string> {
    return this.#context.answerHeaders();
  }

  /** Whether calls are guarded as someone decided, and if not, why. */
  readiness(): Readiness {
    return this.state().readiness;
  }

  state(): AgentState {
    return agentState({
      id: this.id,
      incarnation: this.incarnation,
      nowMs: this.#parts.host.nowMs(),
      snapshot: this.#snapshot,
      stream: this.#stream.status(),
      lastContactMs: this.#lastContactMs,
      savedAtUnixMs: this.#parts.savedAtUnixMs,
      diskProblem: this.#parts.keeper?.problem,
      refusals: this.#refusals,
      policies: this.#policies,
    });
  }

  /** Sends the last counts and ends the stream. Calls still pass, under the policies in force. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#reporter.flush();
    this.#reporter.stop();
    await this.#stream.close();
  }

  #hello() {
    const { namespace, service, instance, labels } = this.#parts.options;
    return {
      namespace,
      service,
      instance,
      incarnation: this.incarnation,
      labels: { ...labels },
      version: VERSION,
      protocol: PROTOCOL_LEVEL,
      held: this.#snapshot.version,
      // What a bootstrap file brought is no generation of the control plane's.
      resources: [...this.#snapshot.resources.values()]
        .filter((resource) => resource.generation > 0)
        .map(({ name, uid, generation }) => ({ name, uid, generation })),
    };
  }

  /** In force first, then on disk, then acknowledged: what is called distributed must be so. */
  async #update(update: Update, ack: (ack: Ack) => void): Promise<void> {
    this.#contact();
    const { logger } = this.#parts.options;
    const applied = applyUpdate(this.#snapshot, update, compileResource);
    this.#snapshot = applied.snapshot;
    if (applied.stale) {
      logger.warn({ version: update.version }, 'refused policies older than those in force');
    } else {
      this.#policies.swap(compiledOf(applied.snapshot));
      this.#rejectedAtMs.clear();
      this.#policies.setServiceAgents(update.serviceAgents);
      this.#noteRefusals(applied.statuses);
      this.#hint();
      await this.#parts.keeper?.save(applied.snapshot);
    }
    ack({ nonce: update.nonce, version: applied.snapshot.version, resources: [...applied.statuses] });
    this.#tell({ kind: 'policies' });
  }

  #noteRefusals(
    statuses: readonly {
      name?: { namespace: string; name: string } | undefined;
      generation: number;
      accepted: boolean;
      reason: string;
    }[],
  ): void {
    const refusals = { ...this.#refusals };
    for (const { name, generation, accepted, reason } of statuses) {
      const id = `${name?.namespace}/${name?.name}`;
      if (accepted) delete refusals[id];
      else refusals[id] = `generation ${generation}: ${reason}`;
      if (!accepted) this.#parts.options.logger.error({ policy: id, generation, reason }, 'refused a policy');
    }
    this.#refusals = refusals;
  }

  #hint(): void {
    if (this.#hinted || this.#policies.applicable > 0) return;
    this.#hinted = true;
    const { namespace, service, labels, logger } = this.#parts.options;
    logger.warn(
      { namespace, service, labels: JSON.stringify(labels) },
      'no policy is for this agent: its calls pass unguarded. Check its namespace, service and labels',
    );
  }

  #verdicts({ verdicts, removed }: VerdictUpdate): void {
    this.#contact();
    const nowMs = this.#parts.host.nowMs();
    const holder = { id: this.id, incarnation: this.incarnation };
    for (const message of verdicts) {
      const verdict = toFleetVerdict(message, holder);
      if (message.key === undefined || verdict === undefined) continue;
      if (this.#inbox.put(breakerKeyId(message.key), verdict, nowMs)) {
        this.#policies.applyVerdict(message.key, verdict);
      }
    }
    for (const key of removed) this.#inbox.remove(breakerKeyId(key));
  }

  #changed(id: string, change: GateChange): void {
    const urgent = change === 'failure' || change === 'probe' || change === 'local';
    if (urgent || (change === 'rejected' && this.#isNewDemand(id))) this.#reporter.urgent(id);
    else this.#reporter.changed(id);
  }

  /** The first rejected call after a silence says that there is somebody who could probe. */
  #isNewDemand(id: string): boolean {
    const nowMs = this.#parts.host.nowMs();
    const lastMs = this.#rejectedAtMs.get(id) ?? -Infinity;
    this.#rejectedAtMs.set(id, nowMs);
    return nowMs - lastMs > DEMAND_SILENCE_MS;
  }

  #heard(event: EngineEvent): void {
    if (event.type === 'breaker-transition') {
      const { from, to, reason } = event.transition;
      this.#parts.options.logger.info(
        { policy: event.policy, key: event.key, from, to, reason },
        'breaker changed',
      );
    }
    this.#parts.onEvent?.(event);
  }

  #contact(): void {
    this.#lastContactMs = this.#parts.host.nowMs();
  }

  #tell(end: StartEnd): void {
    for (const listener of this.#waiting) listener(end);
  }
}

function compiledOf(snapshot: Snapshot<CompiledPolicy>): CompiledPolicy[] {
  return [...snapshot.resources.values()].map((resource) => resource.compiled);
}

/** The value of a call, or the error it ends with. */
function settle<T>(service: string, result: CallResult<T>, fallback: CallOptions<T>['fallback']): T {
  switch (result.kind) {
    case 'fresh':
      return result.value;
    case 'degraded':
      if (result.fixed === undefined) return result.value as T;
      return fallback === undefined ? settle(service, result.cause, undefined) : fallback(result.fixed);
    case 'rejected':
      throw new RejectedError({ service, ...result });
    case 'failed':
      if (result.value !== undefined) return result.value;
      if (result.timedOut) throw new DeadlineError({ service, ...result, cause: result.error });
      throw result.error;
  }
}
