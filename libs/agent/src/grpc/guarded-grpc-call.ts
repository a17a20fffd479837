import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type InterceptorOptions,
  type Metadata,
  type NextCall,
  status as Status,
  type StatusObject,
} from '@grpc/grpc-js';
import type {
  Attempt,
  CallAdapter,
  CallerHold,
  CallFailure,
  CallRequest,
  DegradedReason,
} from '@bulwark/resilience';
import type { CallPlan } from '../guarded-fetch.js';
import { attemptHeaders, HEADER } from '../headers.js';
import { GRPC_METADATA } from '../judge-grpc.js';
import { GrpcAttempt } from './grpc-attempt.js';
import { type GrpcAnswer, judgeAnswered, judgeEnded } from './grpc-end.js';
import { type GrpcFailure, type GrpcGuard, type GrpcOptions, guardOf } from './grpc-options.js';
import { grpcRequest, mayBeRemembered, ownDeadlineUnixMs } from './grpc-request.js';
import { type Outcome, outcomeOf, plainStatus } from './grpc-outcome.js';
import { hostOfTarget } from './grpc-target.js';
import type { CallListener, InterceptedCall, MessageContext } from './grpc-types.js';
import { grpcCacheKey } from './remembered-answer.js';
import { SentMessages } from './sent-messages.js';

export interface GrpcEnvironment {
  readonly plan: (service: string, operation: string) => CallPlan;
  /** Marks of the call this process is answering at the moment. */
  readonly inherited: () => { readonly callerAttempt?: number };
  readonly traceId: () => string | undefined;
  /** Monotonic. */
  readonly nowMs: () => number;
  readonly unixMs: () => number;
}

/** What was chosen for a call before it is made. */
interface Prepared {
  readonly service: string;
  readonly plan: CallPlan;
  readonly request: CallRequest;
  readonly callerAttempt: number;
  /** Its answer may be remembered. */
  readonly remember: boolean;
  readonly metadata: Metadata;
  /** Works where the application made the call: attempts are begun by timers and by other calls' ends. */
  readonly within: ReturnType<typeof AsyncLocalStorage.snapshot>;
}

const NO_HOLD: CallerHold = { heldMs: 0, holding: false };

/**
 * One call of an application, under its guard. Messages and half-close go to the attempt under way, and are kept while
 * another may follow; headers and messages of a stream reach the application as they come, a single answer when its
 * status is known. The application hears exactly one status.
 */
export class GuardedGrpcCall implements InterceptedCall {
  readonly #environment: GrpcEnvironment;
  readonly #client: GrpcOptions;
  readonly #options: InterceptorOptions;
  readonly #nextCall: NextCall;
  readonly #guard: GrpcGuard;
  readonly #abort = new AbortController();
  readonly #sent: SentMessages;
  #listener: CallListener = {};
  #prepared: Prepared | undefined;
  #begun = false;
  #attempt: GrpcAttempt | undefined;
  /** Made to ask for the channel's target; it serves as the attempt of an unguarded call. */
  #spare: InterceptedCall | undefined;
  #target: string | undefined;
  #wantsRead = false;
  #delivered = false;
  #ended = false;
  #cancelledAs: StatusObject | undefined;

  constructor(
    environment: GrpcEnvironment,
    client: GrpcOptions,
    call: { readonly options: InterceptorOptions; readonly nextCall: NextCall },
  ) {
    this.#environment = environment;
    this.#client = client;
    this.#options = call.options;
    this.#nextCall = call.nextCall;
    this.#guard = guardOf(call.options);
    this.#sent = new SentMessages(true, call.options.method_definition.requestStream);
  }

  start(metadata: Metadata, listener: CallListener = {}): void {
    this.#listener = listener;
    const { signal } = this.#guard;
    if (signal?.aborted === true) this.#onSignal();
    else signal?.addEventListener('abort', this.#onSignal, { once: true });
    this.#prepared = this.#prepare(metadata);
    // A remembered answer is named by its request, which is not here yet.
    if (!this.#prepared.remember || this.#sent.halfClosed || this.#cancelledAs !== undefined) this.#begin();
  }

  sendMessage(message: unknown): void {
    this.sendMessageWithContext({}, message);
  }

  sendMessageWithContext(context: MessageContext, message: unknown): void {
    if (this.#ended) {
      // Nobody waits for it, but the application for its turn.
      if (context.callback !== undefined) process.nextTick(context.callback);
      return;
    }
    this.#sent.add(message, context);
    this.#attempt?.sending();
  }

  halfClose(): void {
    this.#sent.halfClosed = true;
    this.#begin();
    this.#attempt?.sending();
  }

  startRead(): void {
    if (!this.#streams) return;
    this.#wantsRead = true;
    this.#attempt?.reading();
  }

  cancelWithStatus(status: Status, details: string): void {
    if (this.#ended || this.#cancelledAs !== undefined) return;
    this.#cancelledAs = plainStatus(status, details);
    this.#abort.abort(new Error(details));
    this.#begin();
  }

  getPeer(): string {
    return this.#attempt?.inner?.getPeer() ?? this.#target ?? 'unknown';
  }

  getAuthContext(): ReturnType<InterceptedCall['getAuthContext']> {
    return this.#attempt?.inner?.getAuthContext() ?? null;
  }

  readonly #onSignal = (): void => this.cancelWithStatus(Status.CANCELLED, 'Cancelled by its signal');

  get #streams(): boolean {
    return this.#options.method_definition.responseStream;
  }

  /** A single request and a single answer. */
  get #unary(): boolean {
    return !this.#streams && !this.#options.method_definition.requestStream;
  }

  #prepare(metadata: Metadata): Prepared {
    const { inherited, plan: planOf, unixMs } = this.#environment;
    const guard = this.#guard;
    const service = guard.service ?? this.#client.service ?? this.#hostOfTarget();
    const call = { options: this.#options, metadata, guard, nowUnixMs: unixMs() };
    const request = grpcRequest(call, this.#client);
    const plan = planOf(service, request.operation);
    const callerAttempt = Math.max(request.callerAttempt ?? 1, inherited().callerAttempt ?? 1);
    if (callerAttempt > 1 || !mayBeRepeated(plan, request)) this.#sent.letGo();
    if (plan.settings !== undefined) this.#dropSpare();
    const remember =
      this.#unary && plan.lastGood !== undefined && mayBeRemembered(request, guard, this.#client);
    const within = AsyncLocalStorage.snapshot();
    return { service, plan, request, callerAttempt, remember, metadata, within };
  }

  /** Only a call knows its channel's target. */
  #hostOfTarget(): string {
    this.#spare = this.#nextCall(this.#options);
    this.#target = this.#spare.getPeer();
    return hostOfTarget(this.#target);
  }

  #begin(): void {
    if (this.#begun || this.#prepared === undefined) return;
    this.#begun = true;
    const { plan, request } = this.#prepared;
    const cacheKey = this.#cacheKey(this.#prepared);
    const whole = { ...request, signal: this.#abort.signal, ...(cacheKey !== undefined && { cacheKey }) };
    plan
      .execute(whole, (attempt) => this.#run(attempt, this.#options.method_definition.path), this.#adapter())
      .then(
        (result) => this.#finish(outcomeOf(this.#service, result, this.#environment.traceId())),
        (error: unknown) => this.#finish({ status: plainStatus(Status.INTERNAL, String(error)) }),
      );
  }

  get #service(): string {
    return this.#prepared?.service ?? '';
  }

  #cacheKey({ remember, plan, request, metadata }: Prepared): string | undefined {
    if (!remember || plan.lastGood === undefined) return undefined;
    if (this.#guard.cacheKey !== undefined) return this.#guard.cacheKey;
    const message = this.#sent.at(0)?.message;
    return grpcCacheKey({ ...request, message, metadata }, this.#options, plan.lastGood.varyBy);
  }

  #adapter(): CallAdapter<GrpcAnswer> {
    const { fallback } = this.#guard;
    const simplified = this.#unary ? simplifiedOperation(this.#prepared?.plan) : undefined;
    return {
      judge: judgeAnswered,
      judgeError: judgeEnded,
      callerHold: () => this.#attempt?.hold() ?? NO_HOLD,
      spent: () => (this.#delivered ? 'delivered' : this.#sent.whole ? 'nothing' : 'sent'),
      makesStatic: false,
      ...(simplified !== undefined && {
        simplified: (operation: string, _request: CallRequest, attempt: Attempt) =>
          this.#run(attempt, `/${operation}`),
      }),
      ...(fallback !== undefined &&
        !this.#streams && {
          fallback: (cause: CallFailure<GrpcAnswer>, reason: DegradedReason) =>
            this.#standIn(fallback, { status: outcomeOf(this.#service, cause).status, reason }),
        }),
    };
  }

  async #standIn(fallback: (failure: GrpcFailure) => unknown, failure: GrpcFailure): Promise<GrpcAnswer> {
    const message: unknown = await this.#prepared?.within(fallback, failure);
    return { status: plainStatus(Status.OK, ''), headers: undefined, message, bytes: undefined };
  }

  #run(attempt: Attempt, path: string): Promise<GrpcAnswer> {
    const { within, metadata, callerAttempt, plan, remember } = this.#prepared as Prepared;
    const attempted = metadata.clone();
    const { [HEADER.attempt]: number } = attemptHeaders(attempt, callerAttempt);
    if (number !== undefined) attempted.set(GRPC_METADATA.attempt, number);
    const { idempotencyKey } = this.#guard;
    if (idempotencyKey !== undefined) attempted.set(GRPC_METADATA.idempotencyKey, idempotencyKey);
    return within(() => {
      const made = new GrpcAttempt(attempt, {
        sent: this.#sent,
        open: (options) => this.#open(options),
        options: this.#attemptOptions(attempt, path),
        metadata: attempted,
        remember,
        enforced: plan.settings?.mode !== 'shadow',
        nowMs: this.#environment.nowMs,
        wantsRead: () => this.#wantsRead,
        onHeaders: (headers) => this.#listener.onReceiveMetadata?.(headers),
        onMessage: (message) => this.#hand(message),
      });
      this.#attempt = made;
      return made.run();
    });
  }

  #attemptOptions(attempt: Attempt, path: string): InterceptorOptions {
    const method = this.#options.method_definition;
    const options = {
      ...this.#options,
      method_definition: path === method.path ? method : { ...method, path },
    };
    if (!Number.isFinite(attempt.timeoutMs)) return options;
    const endUnixMs = Math.ceil(this.#environment.unixMs() + Math.max(0, attempt.timeoutMs));
    return { ...options, deadline: Math.min(endUnixMs, ownDeadlineUnixMs(this.#options)) };
  }

  #open(options: InterceptorOptions): InterceptedCall {
    const spare = this.#spare;
    this.#spare = undefined;
    if (spare === undefined) return this.#nextCall(options);
    // It has the caller's own deadline, and none of a call that is being answered.
    if (options.deadline === undefined || options.deadline === ownDeadlineUnixMs(this.#options)) return spare;
    spare.cancelWithStatus(Status.CANCELLED, 'Not used');
    return this.#nextCall(options);
  }

  #hand(message: unknown): void {
    this.#wantsRead = false;
    if (!this.#delivered) {
      this.#delivered = true;
      this.#sent.letGo();
    }
    this.#listener.onReceiveMessage?.(message);
  }

  /** In ticks of their own: what the application throws is its own uncaught error, and takes nothing of the rest away. */
  #finish(outcome: Outcome): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#guard.signal?.removeEventListener('abort', this.#onSignal);
    this.#dropSpare();
    const { headers, message, status, bytes } =
      this.#cancelledAs === undefined ? outcome : { status: this.#cancelledAs };
    const method = this.#options.method_definition;
    const answer: unknown = bytes === undefined ? message : method.responseDeserialize(bytes);
    const listener = this.#listener;
    if (headers !== undefined) process.nextTick(() => listener.onReceiveMetadata?.(headers));
    if (!this.#streams) process.nextTick(() => listener.onReceiveMessage?.(answer ?? null));
    process.nextTick(() => listener.onReceiveStatus?.(status));
    process.nextTick(() => this.#sent.end());
  }

  /** A call that is not used is ended, or its channel would count it for ever. */
  #dropSpare(): void {
    this.#spare?.cancelWithStatus(Status.CANCELLED, 'Not used');
    this.#spare = undefined;
  }
}

/** Whether the policy retries calls like this one at all; only then is what it sends kept. */
function mayBeRepeated({ settings }: CallPlan, request: CallRequest): boolean {
  const retry = settings?.retry;
  if (retry === undefined || settings?.mode === 'shadow') return false;
  return request.idempotencyKey !== undefined || retry.methods.has(request.method ?? '');
}

/** The policy's simplified operation, where it is one of gRPC's. */
function simplifiedOperation(plan: CallPlan | undefined): string | undefined {
  const found = plan?.settings?.fallbacks.find((fallback) => fallback.kind === 'simplified');
  return found !== undefined && /^[^ /]+\/[^ /]+$/.test(found.operation) ? found.operation : undefined;
}
