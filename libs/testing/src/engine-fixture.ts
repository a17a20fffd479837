import type {
  Attempt,
  BreakerSettings,
  CallAdapter,
  GuardSettings,
  Judgement,
  RetrySettings,
} from '@bulwark/resilience';

/** Settings for tests. `scope: Instance`, no ramp, a cooldown of 5 s that does not grow: what most scenario tables use. */
export function breakerSettings(overrides: Partial<BreakerSettings> = {}): BreakerSettings {
  return {
    scope: 'Instance',
    per: ['target'],
    trip: { consecutiveFailures: 3 },
    quorum: { instances: 1, share: 0 },
    cooldown: { initialMs: 5000, maxMs: 5000, factor: 1 },
    probe: { concurrent: 1, successesToClose: 1, timeoutMs: 1000 },
    recovery: { steps: [], stepForMs: 5000 },
    ruleHash: JSON.stringify(overrides.trip ?? 'three'),
    ...overrides,
  };
}

export function retrySettings(overrides: Partial<RetrySettings> = {}): RetrySettings {
  return {
    maxAttempts: 3,
    backoff: { baseMs: 1000, maxMs: 8000, jitter: 'full' },
    statuses: new Set([429, 502, 503, 504]),
    grpc: new Set(['UNAVAILABLE']),
    failures: new Set(['connect', 'reset', 'timeout']),
    methods: new Set(['GET', 'HEAD']),
    ...overrides,
  };
}

export function guardSettings(overrides: Partial<GuardSettings> = {}): GuardSettings {
  return {
    policy: 'shop/recs',
    generation: 7,
    mode: 'enforce',
    timeout: { totalMs: 5000 },
    fallbacks: [],
    failures: {
      statuses: new Set(Array.from({ length: 100 }, (_, index) => 500 + index)),
      grpc: new Set(['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'INTERNAL']),
      timeouts: true,
    },
    ...overrides,
  };
}

export interface Reply {
  readonly status: number;
  readonly body?: string;
  readonly retryAfterMs?: number;
}

export class TransportError extends Error {
  constructor(readonly judgement: Judgement) {
    super('transport');
  }
}

/** What the dependency does with one call: an answer, an error, or nothing for ever; after a while or at once. */
export interface Behaviour {
  readonly reply?: Reply;
  readonly throws?: unknown;
  readonly afterMs?: number;
  readonly hangs?: boolean;
}

export const OK: Behaviour = { reply: { status: 200 } };
export const FAIL: Behaviour = { reply: { status: 503 } };
export const HANG: Behaviour = { hangs: true };

/** A dependency that keeps its own log: what it saw is the judge, not what the engine says. */
export class FakeDependency {
  calls = 0;
  inFlight = 0;
  peak = 0;
  readonly timeouts: number[] = [];
  readonly probes: boolean[] = [];
  /** Used up first; then `otherwise`. */
  script: Behaviour[] = [];
  otherwise: Behaviour = OK;

  constructor(private readonly sleep: (ms: number) => Promise<void>) {}

  readonly run = (attempt: Attempt): Promise<Reply> => {
    this.calls += 1;
    this.timeouts.push(attempt.timeoutMs);
    this.probes.push(attempt.probe);
    this.inFlight += 1;
    this.peak = Math.max(this.peak, this.inFlight);
    const behaviour = this.script.shift() ?? this.otherwise;
    // A call that is aborted has left the dependency at once: its socket is closed.
    let gone = false;
    const leave = (): void => {
      if (!gone) this.inFlight -= 1;
      gone = true;
    };
    const aborted = new Promise<never>((_, reject) => {
      attempt.signal.addEventListener('abort', () => {
        leave();
        reject(new Error('aborted'));
      });
    });
    return Promise.race([this.behave(behaviour), aborted]).finally(leave);
  };

  private async behave(behaviour: Behaviour): Promise<Reply> {
    if (behaviour.hangs === true) return new Promise(() => undefined);
    if (behaviour.afterMs !== undefined) await this.sleep(behaviour.afterMs);
    if (behaviour.throws !== undefined) {
      throw behaviour.throws instanceof Error ? behaviour.throws : new Error('thrown');
    }
    return behaviour.reply ?? { status: 200 };
  }
}

export const replyAdapter: CallAdapter<Reply> = {
  judge: (reply) => ({
    httpStatus: reply.status,
    ...(reply.retryAfterMs !== undefined && { retryAfterMs: reply.retryAfterMs }),
  }),
  judgeError: (error) => (error instanceof TransportError ? error.judgement : {}),
};
