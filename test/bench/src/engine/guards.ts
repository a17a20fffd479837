import { SystemHost } from '@bulwark/agent';
import {
  Guard,
  type Attempt,
  type BreakerSettings,
  type CallResult,
  type GuardSettings,
  type Host,
  type ValueAdapter,
} from '@bulwark/resilience';
import { breakerSettings, guardSettings, retrySettings } from '@bulwark/testing';

/** One for all guards of the suite, as a service has one agent. */
export const systemHost = new SystemHost();

export const REQUEST = { operation: 'GET /v1/recs', method: 'GET' } as const;

/** What the guarded call does: nothing, asynchronously. */
// eslint-disable-next-line @typescript-eslint/require-await
export const succeed = async (): Promise<number> => 1;

const DOWN = new Error('down');
// eslint-disable-next-line @typescript-eslint/require-await
export const fail = async (): Promise<number> => {
  throw DOWN;
};

const SUCCESS = {};
const FAILURE = { failure: true } as const;
const GIVEN: unknown = new Error('not fresh');

export const adapter: ValueAdapter<number> = {
  judge: () => SUCCESS,
  judgeError: () => FAILURE,
  conclude(result: Exclude<CallResult<number>, { kind: 'fresh' }>): number {
    throw result.kind === 'failed' ? result.error : GIVEN;
  },
};

const RATE = { ratio: 0.5, minimumCalls: 20 };

/** Two rules at once, over 10 s unless asked otherwise. */
export function breaker(windowMs = 10_000, overrides: Partial<BreakerSettings> = {}): BreakerSettings {
  return breakerSettings({
    trip: { consecutiveFailures: 10, failureRate: { ...RATE, window: { ms: windowMs } } },
    ...overrides,
  });
}

/** A breaker that counts every failure and never opens: what failing calls cost is what is measured. */
export function countingBreaker(windowMs: number): BreakerSettings {
  return breakerSettings({
    trip: { failureRate: { ratio: 1, minimumCalls: 1_000_000_000, window: { ms: windowMs } } },
  });
}

export const BULKHEAD = { maxConcurrent: 100, maxQueued: 20, maxWaitMs: 1000 };

export function guard(
  settings: Partial<GuardSettings>,
  more: { host?: Host; keyOf?: () => string } = {},
): Guard {
  return new Guard({
    host: systemHost,
    settings: guardSettings({ bulkhead: BULKHEAD, ...settings }),
    maxKeys: 20_000,
    ...more,
  });
}

/** Deadline, retry with its budget, breaker, bulkhead and counting. */
export function everything(settings: Partial<GuardSettings> = {}): Partial<GuardSettings> {
  return {
    timeout: { attemptMs: 1000, totalMs: 5000 },
    retry: retrySettings({ budget: { ratio: 0.1, minPerSecond: 10, windowMs: 60_000 } }),
    breaker: breaker(),
    ...settings,
  };
}

/** No deadline, which nobody asks for here. */
export const NO_TIMEOUT = { totalMs: Infinity };

export function call(guarded: Guard, run: (attempt: Attempt) => Promise<number>): () => Promise<number> {
  return () => guarded.run(REQUEST, run, adapter);
}

/** One whose breaker is open, and stays so for the length of any benchmark. */
export async function openGuard(): Promise<Guard> {
  const cooldown = { initialMs: 3_600_000, maxMs: 3_600_000, factor: 1 };
  const opened = guard(everything({ breaker: breaker(10_000, { cooldown }) }));
  for (let n = 0; n < 10; n += 1) await opened.call(REQUEST, fail, adapter);
  const state = opened.gate('target')?.localState(systemHost.nowMs());
  if (state !== 'open') throw new Error(`the breaker should be open, and is ${state}`);
  return opened;
}
