import { afterEach, describe, expect, it } from 'vitest';
import { atEnd, cleanUp } from './agent-fixture.js';
import { ArgumentError, connect, silentLogger, type Bulwark } from './index.js';

afterEach(async () => {
  expect(await cleanUp()).toEqual([]);
});

async function unlinked(): Promise<Bulwark> {
  const bootstrap = [
    {
      apiVersion: 'bulwark.dev/v1',
      kind: 'ResiliencePolicy',
      metadata: { name: 'pricing' },
      spec: { target: { service: 'pricing' }, timeout: { total: '1s' } },
    },
  ];
  const bulwark = await connect({ service: 'storefront', bootstrap, logger: silentLogger });
  atEnd(() => bulwark.close());
  return bulwark;
}

/** As a program without types calls it. */
type Untyped = (...given: unknown[]) => Promise<unknown>;

describe('bulwark.call, called with what is no call', () => {
  const ok = () => Promise.resolve('ok');
  it.each<[string, unknown[], RegExp]>([
    ['no function', ['pricing', { operation: 'get' }], /third argument \(absent\) must be the function/],
    ['no options', ['pricing', ok], /options \(a function\) must be an object, .*third argument \(absent\)/],
    ['both swapped', ['pricing', ok, { operation: 'get' }], /the function comes last, after the options/],
    ['nothing at all', [], /service \(absent\).*options \(absent\).*third argument \(absent\)/],
    ['a deadline in words', ['pricing', { deadlineMs: '800' }, ok], /deadlineMs "800" must be a number/],
    ['a deadline that was computed from nothing', ['pricing', { deadlineMs: NaN }, ok], /deadlineMs NaN/],
    [
      'several things wrong',
      ['pricing', { deadlineMs: null, judge: true, fallback: 'none', onResult: {} }, 5],
      /deadlineMs null.*judge true.*fallback "none".*onResult {}.*third argument 5/,
    ],
  ])('%s: is told at once what is expected', async (_what, given, message) => {
    const bulwark = await unlinked();
    for (const service of ['pricing', 'unguarded']) {
      const call = bulwark.call.bind(bulwark) as Untyped;
      const end = call(...given.map((one) => (one === 'pricing' ? service : one)));
      await expect(end).rejects.toThrow(ArgumentError);
      await expect(end).rejects.toThrow(message);
    }
  });

  it('is made as ever with what is one', async () => {
    const bulwark = await unlinked();
    expect(await bulwark.call('pricing', { deadlineMs: Infinity }, ok)).toBe('ok');
    expect(await bulwark.call('pricing', {}, ok)).toBe('ok');
  });
});

it('fetch with a deadline that is no number is refused before anything is sent', async () => {
  const bulwark = await unlinked();
  const guard = { deadlineMs: '800' as unknown as number };
  const answer = bulwark.fetch('http://pricing.invalid/', { bulwark: guard });
  await expect(answer).rejects.toThrow(ArgumentError);
  await expect(answer).rejects.toThrow(/deadlineMs "800" must be a number/);
});
