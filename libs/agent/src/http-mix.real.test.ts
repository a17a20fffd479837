import { eventually, seededRandom } from '@bulwark/testing';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, request } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import { agentOf, atEnd, cleanUp, upstream } from './agent-fixture.js';
import { undiciInterceptor } from './undici/index.js';

afterEach(async () => {
  expect(await cleanUp()).toEqual([]);
});

const CALLS = 400;
const LARGE = Buffer.alloc(300 * 1024, 'x');

/** The dependency does what the path says. */
function behave({ url = '' }: IncomingMessage, response: ServerResponse): void {
  switch (url.slice(1)) {
    case 'ok':
      return void response.end('ok');
    case 'large':
      return void response.end(LARGE);
    case 'failure':
      return void response.writeHead(503).end(LARGE);
    case 'breaks':
      response.writeHead(200, { 'content-length': '9' });
      response.write('half');
      return void setTimeout(() => response.destroy(), 5);
    case 'stalls':
      return void response.write('half');
    case 'hangs':
      return;
    default:
      return void response.destroy();
  }
}

const DEPENDENCY = ['ok', 'ok', 'ok', 'large', 'failure', 'breaks', 'stalls', 'hangs', 'resets'];
const CALLER = ['reads', 'reads', 'ignores', 'cancels', 'aborts early', 'aborts late'];

describe('whatever dependencies and callers do', () => {
  const spec = {
    target: { service: '127.0.0.1' },
    timeout: { attempt: '150ms', total: '500ms' },
    retry: { maxAttempts: 2, backoff: { base: '1ms', max: '5ms', jitter: 'full' } },
    bulkhead: { maxConcurrent: 10, maxQueued: 40, maxWait: '200ms' },
    circuitBreaker: {
      scope: 'Instance',
      trip: { failureRate: { ratio: '60%', minimumCalls: 20, window: '1s' } },
      cooldown: { initial: '50ms', max: '50ms', factor: 1 },
      recovery: { steps: [] },
    },
  };

  it.each([1, 2, 3])(
    'no slot, queue place or timer is left behind, and every call ends (seed %i)',
    async (seed) => {
      const random = seededRandom(seed);
      const pick = (from: readonly string[]): string => from[Math.floor(random() * from.length)] ?? '';
      const { url } = await upstream(behave);
      const document = {
        apiVersion: 'bulwark.dev/v1',
        kind: 'ResiliencePolicy',
        metadata: { name: 'mix' },
        spec,
      };
      const bulwark = await agentOf('127.0.0.1:1', { bootstrap: [document] });
      const agent = new Agent();
      const dispatcher = agent.compose(undiciInterceptor(bulwark));
      atEnd(() => agent.destroy());

      const fetched = async (path: string, caller: string, signal: AbortSignal): Promise<void> => {
        const answer = await bulwark.fetch(path, { signal });
        if (caller === 'cancels') await answer.body?.cancel();
        else if (caller !== 'ignores') await answer.arrayBuffer();
      };
      const requested = async (path: string, caller: string, signal: AbortSignal): Promise<void> => {
        const { body } = await request(path, { dispatcher, signal });
        // Without a listener an error of a body nobody reads would be thrown at the process.
        body.on('error', () => undefined);
        if (caller === 'cancels') body.destroy();
        else if (caller !== 'ignores') await body.arrayBuffer();
      };
      const one = async (number: number): Promise<string> => {
        await new Promise((resolve) => setTimeout(resolve, random() * 1_500));
        const [path, caller] = [`${url}/${pick(DEPENDENCY)}`, pick(CALLER)];
        const aborter = new AbortController();
        const abortMs = caller === 'aborts early' ? 3 : caller === 'aborts late' ? 60 : undefined;
        if (abortMs !== undefined) setTimeout(() => aborter.abort(new Error('enough')), abortMs);
        const make = number % 2 === 0 ? fetched : requested;
        return make(path, caller, aborter.signal).then(
          () => 'ended',
          () => 'threw',
        );
      };
      const ends = await Promise.all(Array.from({ length: CALLS }, (_, number) => one(number)));
      expect(new Set(ends)).toEqual(new Set(['ended', 'threw']));
      const totals = () => bulwark.state().policies[0]?.totals;
      await eventually(() => totals()?.inFlight === 0 && totals()?.waiting === 0, { withinMs: 2_000 });
      const { calls = 0, fresh = 0, failed = 0, cancelled = 0, rejected } = totals() ?? {};
      const refused = Object.values(rejected ?? {}).reduce((sum, count) => sum + count, 0);
      expect([calls, fresh + failed + cancelled + refused]).toEqual([CALLS, CALLS]);
    },
  );
});
