import { DegradedMembers } from './degraded-members.js';
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

/** What one outbound call has to do with the inbound calls in flight. */
export interface OutboundJoin extends Patience {
  /** `parent` = its parent span is that of an inbound call; `trace` = only the trace is. */
  readonly by: 'parent' | 'trace';
  /** Hands upward what the call's answer said. */
  readonly tell: (told: Told) => void;
}

export interface JoinTotals {
  /** Outbound calls by what they were found by. */
  readonly parent: number;
  readonly trace: number;
  /** Belonged to no inbound call in flight. */
  readonly none: number;
  /** Inbound calls that were not entered, because the table was full. */
  readonly overflow: number;
}

export interface JoinLimits {
  readonly calls: number;
  readonly callsOfOneTrace: number;
}

const LIMITS: JoinLimits = { calls: 50_000, callsOfOneTrace: 256 };

/**
 * The inbound calls in flight, by trace id. An outbound call belongs to those whose parent span it names too (the
 * service passed `traceparent` on as it was), else to all of its trace (the service made a span of its own). Of several
 * it gets the latest end, so that none is cut off for another's sake, and the highest attempt number, so that retries
 * do not multiply; and it tells all of them. An entry lasts as long as its inbound call, and
 * some time longer where that ended unanswered: what is called later, for a trace that has been answered, belongs to
 * nothing.
 */
export class TraceJoin {
  readonly #limits: JoinLimits;
  readonly #byTrace = new Map<string, InboundEntry[]>();
  readonly #totals = { parent: 0, trace: 0, none: 0, overflow: 0 };
  #size = 0;

  constructor(limits: JoinLimits = LIMITS) {
    this.#limits = limits;
  }

  /** Of one inbound call; `leave` must follow. A full table gives an entry that no outbound call finds. */
  enter(trace: TraceContext, patience: Patience): InboundEntry {
    const entry = new InboundEntry(trace, patience);
    const entries = this.#byTrace.get(trace.traceId);
    if (this.#size >= this.#limits.calls || (entries?.length ?? 0) >= this.#limits.callsOfOneTrace) {
      this.#totals.overflow += 1;
      return entry;
    }
    this.#size += 1;
    if (entries === undefined) this.#byTrace.set(trace.traceId, [entry]);
    else entries.push(entry);
    return entry;
  }

  /** The inbound call is over. Once is enough; further times do nothing. */
  leave(entry: InboundEntry): void {
    const { traceId } = entry.trace;
    const entries = this.#byTrace.get(traceId);
    const at = entries?.indexOf(entry) ?? -1;
    if (entries === undefined || at < 0) return;
    this.#size -= 1;
    if (entries.length === 1) this.#byTrace.delete(traceId);
    else entries.splice(at, 1);
  }

  /** The inbound calls that an outbound call belongs to; undefined = none that is in flight. */
  find({ traceId, parentId }: TraceContext): OutboundJoin | undefined {
    const ofTrace = this.#byTrace.get(traceId);
    if (ofTrace === undefined) {
      this.#totals.none += 1;
      return undefined;
    }
    const ofParent = ofTrace.filter((entry) => entry.trace.parentId === parentId);
    const by = ofParent.length > 0 ? 'parent' : 'trace';
    this.#totals[by] += 1;
    // A copy: the calls in flight now are meant, not those that come and go meanwhile.
    const entries = by === 'parent' ? ofParent : [...ofTrace];
    return {
      by,
      endsAtMs: Math.max(...entries.map((entry) => entry.endsAtMs)),
      attempt: Math.max(...entries.map((entry) => entry.attempt)),
      tell: (told) => entries.forEach((entry) => entry.note(told)),
    };
  }

  /** Inbound calls that outbound ones can find now. */
  get size(): number {
    return this.#size;
  }

  /** Traces in flight; 0 whenever `size` is. */
  get traces(): number {
    return this.#byTrace.size;
  }

  totals(): JoinTotals {
    return { ...this.#totals };
  }
}
