import { DegradedMembers } from '@bulwark/agent';
import type { Told } from './proxied-call.js';
import type { TraceContext } from './traceparent.js';

/** What an inbound call hands down to the calls that are made for it. */
export interface Patience {
  /** Monotonic time at which its caller stops waiting; Infinity = it named none. */
  readonly endsAtMs: number;
  /** Its caller's attempt number, from 1. */
  readonly attempt: number;
}

/** One inbound call in flight. */
export class InboundEntry implements Patience {
  readonly trace: TraceContext;
  readonly endsAtMs: number;
  readonly attempt: number;
  readonly #degraded = new DegradedMembers();
  #exhausted = false;

  constructor(trace: TraceContext, { endsAtMs, attempt }: Patience) {
    this.trace = trace;
    this.endsAtMs = endsAtMs;
    this.attempt = attempt;
  }

  /** A call made for this one was answered. */
  note({ exhausted, degraded }: Told): void {
    this.#exhausted ||= exhausted;
    this.#degraded.add(degraded);
  }

  /** What its answer has to hand upward. */
  get told(): Told {
    return { exhausted: this.#exhausted, degraded: this.#degraded.list };
  }
}

/** What one outbound call has to do with inbound ones. */
export interface OutboundJoin extends Patience {
  /**
   * `parent` = its parent span is that of an inbound call in flight; `trace` = only the trace is; `late` = the inbound call
   * ended unanswered, and the service has not noticed.
   */
  readonly by: 'parent' | 'trace' | 'late';
  /** Hands upward what the call's answer said. */
  readonly tell: (told: Told) => void;
}

export interface JoinTotals {
  /** Outbound calls by what they were found by. */
  readonly parent: number;
  readonly trace: number;
  readonly late: number;
  /** Belonged to no inbound call. */
  readonly none: number;
  /** Inbound calls that were not entered, because the table was full. */
  readonly overflow: number;
}

export interface JoinLimits {
  /** In flight. */
  readonly calls: number;
  readonly callsOfOneTrace: number;
  /** Ended unanswered and remembered. */
  readonly abandoned: number;
  readonly abandonedOfOneTrace: number;
  readonly rememberMs: number;
}

export interface JoinOptions {
  /** Monotonic. */
  readonly nowMs?: () => number;
  readonly limits?: JoinLimits;
}

const LIMITS: JoinLimits = {
  calls: 50_000,
  callsOfOneTrace: 256,
  abandoned: 10_000,
  abandonedOfOneTrace: 8,
  rememberMs: 10_000,
};

interface CallsOfTrace {
  readonly live: InboundEntry[];
  readonly abandoned: InboundEntry[];
}

/**
 * The inbound calls in flight, by trace id. An outbound call belongs to those whose parent span it names too (the
 * service passed `traceparent` on as it was), else to all of its trace (the service made a span of its own). Of several
 * it gets the latest end, so that none is cut off for another's sake, and the highest attempt number, so that retries
 * do not multiply; and it tells all of them.
 *
 * An entry lasts as long as its inbound call: what is called later, for a trace that has been answered, belongs to
 * nothing. A call that ended unanswered (its caller's time was up, or it went away) is remembered a little longer, since
 * most services do not notice: what they still call for it has no more time than their caller gave. Everything is bounded.
 */
export class TraceJoin {
  readonly #nowMs: () => number;
  readonly #limits: JoinLimits;
  readonly #byTrace = new Map<string, CallsOfTrace>();
  /** Until when each is remembered, the oldest first. */
  readonly #abandoned = new Map<InboundEntry, number>();
  readonly #totals = { parent: 0, trace: 0, late: 0, none: 0, overflow: 0 };
  #size = 0;

  constructor({ nowMs = () => performance.now(), limits = LIMITS }: JoinOptions = {}) {
    this.#nowMs = nowMs;
    this.#limits = limits;
  }

  /** Of one inbound call; `leave` or `abandon` must follow. A full table gives an entry that no outbound call finds. */
  enter(trace: TraceContext, patience: Patience): InboundEntry {
    this.#forget();
    const entry = new InboundEntry(trace, patience);
    const calls = this.#byTrace.get(trace.traceId);
    if (this.#size >= this.#limits.calls || (calls?.live.length ?? 0) >= this.#limits.callsOfOneTrace) {
      this.#totals.overflow += 1;
      return entry;
    }
    this.#size += 1;
    if (calls === undefined) this.#byTrace.set(trace.traceId, { live: [entry], abandoned: [] });
    else calls.live.push(entry);
    return entry;
  }

  /** The inbound call was answered. Once is enough; further times do nothing. */
  leave(entry: InboundEntry): void {
    if (!this.#remove(entry, 'live')) return;
    this.#size -= 1;
  }

  /** The inbound call ended without the service's answer. Does nothing after `leave`. */
  abandon(entry: InboundEntry): void {
    const calls = this.#byTrace.get(entry.trace.traceId);
    if (calls === undefined || !calls.live.includes(entry)) return;
    if (entry.endsAtMs !== Infinity || entry.attempt > 1) {
      calls.abandoned.push(entry);
      this.#abandoned.set(entry, this.#nowMs() + this.#limits.rememberMs);
      const [oldestOfTrace] = calls.abandoned;
      if (calls.abandoned.length > this.#limits.abandonedOfOneTrace) this.#drop(oldestOfTrace);
    }
    this.leave(entry);
    this.#forget();
  }

  /** The inbound calls that an outbound call belongs to; undefined = none. */
  find({ traceId, parentId }: TraceContext): OutboundJoin | undefined {
    this.#forget();
    const calls = this.#byTrace.get(traceId);
    if (calls === undefined) {
      this.#totals.none += 1;
      return undefined;
    }
    const ofParent = (entry: InboundEntry): boolean => entry.trace.parentId === parentId;
    const { live, abandoned } = calls;
    // Copies: the calls of this moment are meant, not those that come and go meanwhile.
    for (const [by, entries] of [
      ['parent', live.filter(ofParent)],
      ['late', abandoned.filter(ofParent)],
      ['trace', [...live]],
    ] as const) {
      if (entries.length > 0) return this.#joined(by, entries);
    }
    return this.#joined('late', [...abandoned]);
  }

  /** Inbound calls in flight that outbound ones can find. */
  get size(): number {
    return this.#size;
  }

  /** Inbound calls that are remembered though they ended. */
  get abandoned(): number {
    return this.#abandoned.size;
  }

  /** Traces that something is kept of; 0 when nothing is in flight nor remembered. */
  get traces(): number {
    return this.#byTrace.size;
  }

  totals(): JoinTotals {
    return { ...this.#totals };
  }

  #joined(by: OutboundJoin['by'], entries: readonly InboundEntry[]): OutboundJoin {
    this.#totals[by] += 1;
    return {
      by,
      endsAtMs: Math.max(...entries.map((entry) => entry.endsAtMs)),
      attempt: Math.max(...entries.map((entry) => entry.attempt)),
      tell: (told) => entries.forEach((entry) => entry.note(told)),
    };
  }

  /** Whose time is over, and the oldest ones of too many. */
  #forget(): void {
    if (this.#abandoned.size === 0) return;
    const nowMs = this.#nowMs();
    for (const [entry, untilMs] of this.#abandoned) {
      if (nowMs < untilMs && this.#abandoned.size <= this.#limits.abandoned) return;
      this.#drop(entry);
    }
  }

  #drop(entry: InboundEntry | undefined): void {
    if (entry !== undefined && this.#abandoned.delete(entry)) this.#remove(entry, 'abandoned');
  }

  /** False = it is not there. */
  #remove(entry: InboundEntry, from: keyof CallsOfTrace): boolean {
    const { traceId } = entry.trace;
    const calls = this.#byTrace.get(traceId);
    const at = calls?.[from].indexOf(entry) ?? -1;
    if (calls === undefined || at < 0) return false;
    calls[from].splice(at, 1);
    if (calls.live.length + calls.abandoned.length === 0) this.#byTrace.delete(traceId);
    return true;
  }
}
