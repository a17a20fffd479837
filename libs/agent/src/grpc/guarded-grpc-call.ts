import type { EventEmitter } from 'node:events';
import {
  type InterceptorOptions,
  type Metadata,
  type NextCall,
  propagate,
  status as Status,
  type StatusObject,
} from '@grpc/grpc-js';
import type { Attempt, CallAdapter, CallerHold, CallFailure, DegradedReason } from '@bulwark/resilience';
import { GRPC_METADATA } from '../judge-grpc.js';
import { quote } from '../option-shapes.js';
import { CallMethod } from './call-method.js';
import { GrpcAttempt } from './grpc-attempt.js';
import { type GrpcAnswer, judgeAnswered, judgeEnded } from './grpc-end.js';
import { type GrpcFailure, type GrpcGuard, type GrpcOptions, guardOf } from './grpc-options.js';
import { type Outcome, outcomeOf, plainStatus } from './grpc-outcome.js';
import { ownDeadlineUnixMs } from './grpc-request.js';
import { hostOfTarget } from './grpc-target.js';
import type { CallListener, InterceptedCall, MessageContext } from './grpc-types.js';
import { type GrpcEnvironment, prepareCall, type PreparedCall } from './prepared-call.js';
import { grpcCacheKey } from './remembered-answer.js';
import { SentMessages } from './sent-messages.js';

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
  readonly #method: CallMethod;
  readonly #sent: SentMessages;
  readonly #abort = new AbortController();
  #listener: CallListener = {};
  #prepared: PreparedCall | undefined;
  #begun = false;
  #attempt: GrpcAttempt | undefined;
  /** Made to ask for the channel's target; it serves as the attempt of an unguarded call. */
  #spare: InterceptedCall | undefined;
  #target: string | undefined;
  #wantsRead = false;
  /** Messages of a stream that were handed on. */
  #received = 0;
  /** Why the application's own fallback could not stand in. */
  #noStandIn: string | undefined;
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
    this.#method = new CallMethod(call.options.method_definition);
    this.#sent = new SentMessages(this.#method.requestStream ? this.#method.sizeOf : undefined);
  }

  start(metadata: Metadata, listener: CallListener = {}): void {
    this.#listener = listener;
    const service = this.#guard.service ?? this.#client.service ?? this.#hostOfTarget();
    const { signal } = this.#guard;
    if (signal?.aborted === true) this.#onSignal();
    else signal?.addEventListener('abort', this.#onSignal, { once: true });
    this.#parent?.on('cancelled', this.#onParent);
    const call = { service, options: this.#options, metadata, guard: this.#guard };
    this.#prepared = prepareCall(this.#environment, this.#client, call);
    const { plan, repeatable } = this.#prepared;
    // A single request costs nothing to keep, and a simplified call sends it too.
    if (!repeatable && this.#method.requestStream) this.#sent.letGo();
    if (plan.settings !== undefined) this.#dropSpare();
    // A remembered answer is named by its request, which is not here yet.
    if (!this.#remembers || this.#sent.halfClosed || this.#cancelledAs !== undefined) this.#begin();
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
    if (!this.#method.responseStream) return;
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
  readonly #onParent = (): void => this.cancelWithStatus(Status.CANCELLED, 'Cancelled by its parent call');

  /** The call whose cancellation is this one's too. */
  get #parent(): EventEmitter | undefined {
    const { parent, propagate_flags: flags = propagate.DEFAULTS } = this.#options;
    return (flags & propagate.CANCELLATION) === 0 ? undefined : parent;
  }

  get #remembers(): boolean {
    return this.#method.unary && this.#prepared?.remember === true;
  }

  /** Only a call knows its channel's target. */
  #hostOfTarget(): string {
    this.#spare = this.#nextCall(this.#options);
    this.#target = this.#spare.getPeer();
    return hostOfTarget(this.#target);
  }

  #begin(): void {
    const prepared = this.#prepared;
    if (this.#begun || prepared === undefined) return;
    this.#begun = true;
    const { plan, service } = prepared;
    const cacheKey = this.#cacheKey(prepared);
    const { signal } = this.#abort;
    const request = { ...prepared.request, signal, ...(cacheKey !== undefined && { cacheKey }) };
    plan
      .execute(request, (attempt) => this.#run(prepared, attempt, this.#method.path), this.#adapter(prepared))
      .then(
        (result) =>
          this.#finish(
            outcomeOf(service, result, { traceId: this.#environment.traceId(), received: this.#received }),
          ),
        (error: unknown) => this.#finish({ status: plainStatus(Status.INTERNAL, String(error)) }),
      );
  }

  #cacheKey({ plan, metadata }: PreparedCall): string | undefined {
    if (!this.#remembers || plan.lastGood === undefined) return undefined;
    this.#method.catchAnswers();
    if (this.#guard.cacheKey !== undefined) return JSON.stringify(['grpc', this.#guard.cacheKey]);
    const { message } = this.#sent.at(0) ?? {};
    return grpcCacheKey(this.#method, { message, metadata }, plan.lastGood.varyBy);
  }

  #adapter(prepared: PreparedCall): CallAdapter<GrpcAnswer> {
    const { fallback } = this.#guard;
    const { unary, responseStream } = this.#method;
    const countsCancelled = prepared.plan.settings?.failures.grpc.has('CANCELLED') === true;
    return {
      judge: judgeAnswered,
      judgeError: (error) => judgeEnded(error, countsCancelled),
      callerHold: () => this.#attempt?.hold() ?? NO_HOLD,
      spent: () => (this.#received > 0 ? 'delivered' : this.#sent.whole ? 'nothing' : 'sent'),
      makesStatic: false,
      ...(unary &&
        prepared.simplified !== undefined && {
          simplified: (operation: string, _request: unknown, attempt: Attempt) =>
            this.#run(prepared, attempt, `/${operation}`),
        }),
      ...(fallback !== undefined &&
        !responseStream && {
          fallback: (cause: CallFailure<GrpcAnswer>, reason: DegradedReason) =>
            this.#standIn(prepared, fallback, { status: outcomeOf(prepared.service, cause).status, reason }),
        }),
    };
  }

  /** Throws when there is no message: the call then ends with its own failure, and its details say so. */
  async #standIn(
    { within }: PreparedCall,
    fallback: (failure: GrpcFailure) => unknown,
    failure: GrpcFailure,
  ): Promise<GrpcAnswer> {
    const message: unknown = await within(fallback, failure);
    if (!this.#method.isAnswer(message)) {
      this.#noStandIn = `its fallback gave ${quote(message)}, which is no message`;
      throw new TypeError(this.#noStandIn);
    }
    return { status: plainStatus(Status.OK, ''), headers: undefined, message, bytes: undefined };
  }

  #run(prepared: PreparedCall, attempt: Attempt, path: string): Promise<GrpcAnswer> {
    return prepared.within(() => {
      const made = new GrpcAttempt(attempt, {
        sent: this.#sent,
        method: this.#method,
        open: () => this.#open(prepared.optionsOf(attempt), path),
        metadata: prepared.metadataOf(attempt),
        believed: () => this.#believed(),
        enforced: prepared.plan.settings?.mode !== 'shadow',
        nowMs: this.#environment.nowMs,
        wantsRead: () => this.#wantsRead,
        onHeaders: (headers) => this.#listener.onReceiveMetadata?.(headers),
        onMessage: (message) => this.#hand(message),
      });
      this.#attempt = made;
      return made.run();
    });
  }

  #open(options: InterceptorOptions, path: string): InterceptedCall {
    const spare = this.#spare;
    // It has the caller's own deadline, and not the earlier one of a call that is being answered.
    if (spare !== undefined && ownDeadlineUnixMs(options) >= ownDeadlineUnixMs(this.#options)) {
      this.#spare = undefined;
      return spare;
    }
    this.#dropSpare();
    const call = this.#method.as(path, () => this.#nextCall(options));
    // Not connected yet, it names its channel's target.
    this.#target ??= call.getPeer();
    return call;
  }

  #believed(): boolean {
    try {
      return this.#environment.believes?.(hostOfTarget(this.#target ?? '')) ?? true;
    } catch {
      return false;
    }
  }

  #hand(message: unknown): void {
    this.#wantsRead = false;
    if (this.#received === 0) this.#sent.letGo();
    this.#received += 1;
    this.#listener.onReceiveMessage?.(message);
  }

  #finish(outcome: Outcome): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#guard.signal?.removeEventListener('abort', this.#onSignal);
    this.#parent?.removeListener('cancelled', this.#onParent);
    this.#dropSpare();
    const ending: Outcome = this.#cancelledAs === undefined ? outcome : { status: this.#cancelledAs };
    const { headers, message, bytes } = ending;
    const status = withReason(ending.status, this.#noStandIn);
    const degraded = status.metadata.get(GRPC_METADATA.degraded);
    if (degraded.length > 0) this.#environment.noteDegraded(degraded.join(', '));
    const answer: unknown = bytes === undefined ? message : this.#method.deserialize(bytes);
    const listener = this.#listener;
    // In ticks of their own: what the application throws is its own uncaught error, and takes nothing of the rest away.
    if (headers !== undefined) process.nextTick(() => listener.onReceiveMetadata?.(headers));
    if (!this.#method.responseStream) process.nextTick(() => listener.onReceiveMessage?.(answer ?? null));
    process.nextTick(() => {
      try {
        listener.onReceiveStatus?.(status);
      } finally {
        this.#sent.end();
      }
    });
  }

  /** A call that is not used is ended, or its channel would count it for ever. */
  #dropSpare(): void {
    this.#spare?.cancelWithStatus(Status.CANCELLED, 'Not used');
    this.#spare = undefined;
  }
}

function withReason(status: StatusObject, why: string | undefined): StatusObject {
  if (why === undefined || status.code === Status.OK) return status;
  return { ...status, details: `${status.details}; ${why}` };
}
