import { breakerSettings, FakeHost, guardSettings } from '@bulwark/testing';
import { describe, expect, test } from 'vitest';
import { type CallAdapter, type FallbackSettings, Guard } from './index.js';

const LEVELS = ['worker', 'cluster', 'service', 'database'] as const;
type Level = (typeof LEVELS)[number];

/** What a level answers, and who below it (itself included) did so with something else than the real thing. */
interface Answer {
  readonly body: string;
  readonly degraded: readonly string[];
}

/** What stands in for each level; each is made without the resource it stands for. */
const STAND_INS: Record<Level, string> = {
  worker: 'rescheduled',
  cluster: 'queued',
  service: 'read-only',
  database: 'static data',
};

/** Worker → cluster → service → database: each calls the next one under a guard of its own. */
class Levels {
  readonly host = new FakeHost();
  readonly touched: Record<Level, number> = { worker: 0, cluster: 0, service: 0, database: 0 };
  readonly down = new Set<Level>();
  private readonly guards: Record<Level, Guard>;

  constructor() {
    const guard = (level: Level): Guard =>
      new Guard({
        host: this.host,
        settings: guardSettings({
          policy: `shop/${level}`,
          breaker: breakerSettings({ trip: { consecutiveFailures: 3 } }),
          fallbacks: level === 'database' ? [STATIC] : [],
        }),
      });
    const [worker, cluster, service, database] = LEVELS.map(guard);
    this.guards = { worker: worker!, cluster: cluster!, service: service!, database: database! };
  }

  get states(): Record<string, string> {
    const nowMs = this.host.nowMs();
    const state = (level: Level) => this.guards[level].gate('target')?.stateAt(nowMs).state ?? 'closed';
    return Object.fromEntries(LEVELS.map((level) => [level, state(level)]));
  }

  /** The answer of this level to the one above it. */
  async ask(level: Level): Promise<Answer> {
    const adapter: CallAdapter<Answer> = {
      judge: () => ({}),
      judgeError: () => ({ transport: 'connect' }),
      // The database's stand-in is the policy's own static answer.
      ...(level !== 'database' && { fallback: () => ({ body: STAND_INS[level], degraded: [] }) }),
    };
    const result = await this.guards[level].call({ operation: 'GET /' }, () => this.run(level), adapter);
    if (result.kind === 'fresh') return result.value;
    if (result.kind !== 'degraded') throw new Error(`${level} ${result.kind}`);
    const body = result.value?.body ?? result.fixed?.body ?? '';
    return { body, degraded: [result.policy] };
  }

  private async run(level: Level): Promise<Answer> {
    this.touched[level] += 1;
    if (this.down.has(level)) throw new Error(`${level} is down`);
    const next = LEVELS[LEVELS.indexOf(level) + 1];
    return next === undefined ? { body: 'rows', degraded: [] } : await this.ask(next);
  }
}

const STATIC: FallbackSettings = {
  kind: 'static',
  status: 200,
  body: STAND_INS.database,
  contentType: 'text/plain',
};

describe('S6: worker → cluster → service → database, each with its own breaker and fallback', () => {
  test('S6: with all well, the answer is the database’s and nobody is named', async () => {
    expect(await new Levels().ask('worker')).toEqual({ body: 'rows', degraded: [] });
  });

  test.each(LEVELS)(
    'S6: %s fails: it alone opens, its stand-in answers, and the answer names it',
    async (failing) => {
      const levels = new Levels();
      levels.down.add(failing);
      const expected = { body: STAND_INS[failing], degraded: [`shop/${failing}@7`] };
      for (let call = 0; call < 3; call += 1) expect(await levels.ask('worker')).toEqual(expected);
      const closed = { worker: 'closed', cluster: 'closed', service: 'closed', database: 'closed' };
      expect(levels.states).toEqual({ ...closed, [failing]: 'open' });

      // Open, its stand-in touches neither it nor anything below it.
      const before = { ...levels.touched };
      for (let call = 0; call < 20; call += 1) expect(await levels.ask('worker')).toEqual(expected);
      for (const level of LEVELS.slice(LEVELS.indexOf(failing))) {
        expect(levels.touched[level], level).toBe(before[level]);
      }
      expect(levels.states).toEqual({ ...closed, [failing]: 'open' });

      levels.down.clear();
      await levels.host.advance(5000);
      expect(await levels.ask('worker')).toEqual({ body: 'rows', degraded: [] });
      expect(levels.states).toEqual(closed);
    },
  );

  test('S6: of two that fail the upper one answers, and is the one that is named', async () => {
    const levels = new Levels();
    levels.down.add('database').add('cluster');
    for (let call = 0; call < 5; call += 1) {
      expect(await levels.ask('worker')).toEqual({ body: 'queued', degraded: ['shop/cluster@7'] });
    }
    expect(levels.touched).toMatchObject({ service: 0, database: 0 });
    expect(levels.states).toMatchObject({ cluster: 'open', database: 'closed' });
    levels.down.delete('cluster');
    await levels.host.advance(5000);
    // The upper one is well again: now the lower one shows.
    expect(await levels.ask('worker')).toEqual({ body: 'static data', degraded: ['shop/database@7'] });
  });
});
