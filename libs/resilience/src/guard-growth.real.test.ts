import { queryObjects, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  breakerSettings,
  FakeHost,
  guardSettings,
  type Reply,
  replyAdapter,
  retrySettings,
} from '@bulwark/testing';
import { expect, test } from 'vitest';
import { type Attempt, Guard, Permit } from './index.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function heapBytes(): number {
  for (let round = 0; round < 3; round += 1) collect();
  return process.memoryUsage().heapUsed;
}

/** What a call that never let go would hold: each is counted in the heap itself. */
const HELD = { Promise, Permit, AbortSignal, Error, Map, Array, Float64Array };

function held(): Record<string, number> {
  collect();
  const counts = Object.entries(HELD).map(([name, of]) => [name, queryObjects(of, { format: 'count' })]);
  return Object.fromEntries(counts) as Record<string, number>;
}

/** Every kind of end in turn: well, refused, failed and retried, thrown, timed out, cancelled, rejected, queued, degraded. */
class Traffic {
  readonly host = new FakeHost();
  readonly guard = new Guard({
    host: this.host,
    keyOf: ({ operation }) => operation,
    settings: guardSettings({
      timeout: { attemptMs: 20, totalMs: 60 },
      retry: retrySettings({ backoff: { baseMs: 2, maxMs: 5, jitter: 'full' } }),
      breaker: breakerSettings({
        per: ['operation'],
        trip: {
          failureRate: { ratio: 0.6, minimumCalls: 20, window: { ms: 1000 } },
          slowRate: { slowerThanMs: 15, ratio: 0.9, minimumCalls: 20, window: { calls: 100 } },
          consecutiveFailures: 30,
        },
        cooldown: { initialMs: 50, maxMs: 200, factor: 2 },
        probe: { concurrent: 1, successesToClose: 1, timeoutMs: 20 },
        recovery: { steps: [0.5], stepForMs: 20 },
      }),
      bulkhead: { maxConcurrent: 400, maxQueued: 400, maxWaitMs: 10, adaptive: 'gradient' },
      fallbacks: [{ kind: 'last-good', maxAgeMs: 500, refreshJitter: 0.2, varyBy: [] }],
    }),
  });
  made = 0;
  settled = 0;
  private readonly kinds = new Set<string>();

  async make(calls: number): Promise<void> {
    for (let batch = 0; batch < calls / 1000; batch += 1) {
      for (let each = 0; each < 1000; each += 1) this.call(each);
      await this.host.advance(7);
    }
    await this.host.advance(5000);
  }

  get seen(): string[] {
    return [...this.kinds].sort();
  }

  private call(each: number): void {
    this.made += 1;
    const leaving = each % 10 === 3 ? new AbortController() : undefined;
    void this.guard
      .call(
        {
          operation: `GET /${each % 7}`,
          method: 'GET',
          ...(leaving && { signal: leaving.signal }),
          ...(each % 5 === 0 && { cacheKey: `k${this.made % 3000}` }),
          ...(each % 11 === 0 && { deadlineMs: each % 30 }),
        },
        (attempt) => this.answer(each, attempt),
        replyAdapter,
      )
      .then((result) => {
        this.settled += 1;
        this.kinds.add(result.kind);
      });
    if (leaving !== undefined && each % 20 === 3) leaving.abort();
    else if (leaving !== undefined) this.host.after(each % 15, () => leaving.abort());
  }

  private answer(each: number, attempt: Attempt): Promise<Reply> {
    // Every seventh key is a bad one, for a while.
    const bad = each % 7 === 6 && this.made % 50_000 < 20_000;
    if (bad) return Promise.resolve({ status: 503 });
    switch (each % 13) {
      case 1:
        return Promise.resolve({ status: 503 });
      case 2:
        return Promise.resolve({ status: 404 });
      case 3:
        return Promise.reject(new Error('thrown'));
      case 4:
        return new Promise((_, reject) => {
          attempt.signal.addEventListener('abort', () => reject(new Error('aborted')));
        });
      default:
        return Promise.resolve({ status: 200 });
    }
  }
}

test('a million calls of every kind leave the heap as it was', async () => {
  const traffic = new Traffic();
  await traffic.make(100_000);
  const [beforeBytes, before] = [heapBytes(), held()];
  await traffic.make(1_000_000);
  const [grownBytes, after] = [heapBytes() - beforeBytes, held()];
  expect(traffic.settled).toBe(1_100_000);
  expect(traffic.seen).toEqual(['degraded', 'failed', 'fresh', 'rejected']);
  expect(traffic.guard.read()).toMatchObject({ calls: 1_100_000, inFlight: 0, waiting: 0 });
  expect(traffic.host.pending).toBe(0);
  for (const [name, count] of Object.entries(after)) {
    // One in ten thousand calls would show.
    expect(count - (before[name] ?? 0), `objects of kind ${name}`).toBeLessThan(100);
  }
  // Feedback for the compiler and the like come to 0.2 to 1.1 MB; one object of 16 bytes a call would be 16 MB.
  expect(grownBytes).toBeLessThan(3_000_000);
}, 120_000);
