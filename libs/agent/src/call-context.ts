import type { CallRequest } from '@bulwark/resilience';
import { AsyncLocalStorage } from 'node:async_hooks';
import { DegradedMembers } from './degraded-members.js';
import { HEADER, readIncomingMarks, type IncomingMarks, type ReadHeader } from './headers.js';

interface Incoming {
  readonly marks: IncomingMarks;
  /** Monotonic time at which the caller's patience ends; Infinity = it named none. */
  readonly endsAtMs: number;
  exhausted: boolean;
  /** Absent until an answer was degraded. */
  degraded?: DegradedMembers;
}

export interface Inherited {
  readonly deadlineMs?: number;
  readonly callerAttempt?: number;
}

/** A call has the smaller of both deadlines, and is a repetition when either of them is. */
export function inherit(inherited: Inherited, request: CallRequest): CallRequest {
  const deadlineMs = Math.min(inherited.deadlineMs ?? Infinity, deadlineOf(request));
  const callerAttempt = Math.max(inherited.callerAttempt ?? 1, request.callerAttempt ?? 1);
  return {
    ...request,
    ...(deadlineMs !== Infinity && { deadlineMs }),
    ...(callerAttempt > 1 && { callerAttempt }),
  };
}

/** A deadline that is no number is none, and must not take the inherited one away. */
function deadlineOf({ deadlineMs }: CallRequest): number {
  return deadlineMs === undefined || Number.isNaN(deadlineMs) ? Infinity : deadlineMs;
}

/**
 * Joins the call a service is answering with the calls it makes meanwhile: the deadline and the attempt number go
 * down; "retries are used up" and what was degraded go up. Without it each layer begins anew and retries multiply.
 */
export class CallContext {
  readonly #storage = new AsyncLocalStorage<Incoming>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  run<T>(read: ReadHeader, handler: () => T): T {
    const marks = readIncomingMarks(read);
    const endsAtMs = marks.deadlineMs === undefined ? Infinity : this.#nowMs() + marks.deadlineMs;
    return this.#storage.run({ marks, endsAtMs, exhausted: false }, handler);
  }

  /** A call is being answered now. */
  get active(): boolean {
    return this.#storage.getStore() !== undefined;
  }

  /** What the calls made now inherit; an idempotency key is not passed on, it names another operation. */
  inherited(): Inherited {
    const incoming = this.#storage.getStore();
    if (incoming === undefined) return {};
    const { callerAttempt } = incoming.marks;
    return {
      ...(incoming.endsAtMs !== Infinity && { deadlineMs: Math.max(0, incoming.endsAtMs - this.#nowMs()) }),
      ...(callerAttempt !== undefined && { callerAttempt }),
    };
  }

  /** A call made for the present one ended with its retries used up, here or further down. */
  noteExhausted(): void {
    const incoming = this.#storage.getStore();
    if (incoming !== undefined) incoming.exhausted = true;
  }

  /** An answer to a call made for the present one was degraded, here or further down: its `Bulwark-Degraded`. */
  noteDegraded(list: string | null | undefined): void {
    if (!list) return;
    const incoming = this.#storage.getStore();
    if (incoming !== undefined) (incoming.degraded ??= new DegradedMembers()).add(list);
  }

  /** Headers for the answer to the present call; empty when there is nothing to say. */
  answerHeaders(): Record<string, string> {
    const incoming = this.#storage.getStore();
    const degraded = incoming?.degraded?.list;
    return {
      ...(incoming?.exhausted === true && { [HEADER.retry]: 'exhausted' }),
      ...(degraded !== undefined && { [HEADER.degraded]: degraded }),
    };
  }
}
