import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { atEnd, cleanUp } from './agent-fixture.js';
import { connect, silentLogger, type EngineEvent } from './index.js';

const unhandled: unknown[] = [];
const note = (reason: unknown) => void unhandled.push(reason);
beforeEach(() => {
  unhandled.length = 0;
  process.on('unhandledRejection', note);
});
afterEach(async () => {
  expect(await cleanUp()).toEqual([]);
  process.off('unhandledRejection', note);
});

async function listened() {
  const warnings: object[] = [];
  const events: EngineEvent[] = [];
  const bulwark = await connect({
    service: 'storefront',
    bootstrap: [
      {
        apiVersion: 'bulwark.dev/v1',
        kind: 'ResiliencePolicy',
        metadata: { name: 'pricing' },
        spec: { target: { service: 'pricing' }, timeout: { total: '1s' } },
      },
    ],
    logger: { ...silentLogger, warn: (fields) => warnings.push(fields) },
    onEvent: (event) => {
      events.push(event);
      throw new Error('a listener that throws as well');
    },
  });
  atEnd(() => bulwark.close());
  return { bulwark, warnings, events };
}

describe('a listener of a call’s end that throws', () => {
  const atOnce = (): never => {
    throw new Error('a listener');
  };
  const later = (): unknown => Promise.reject(new Error('a listener'));

  it.each([
    ['at once', atOnce],
    ['later', later],
  ])('%s changes nothing of the call, and is reported', async (_when, onResult) => {
    const { bulwark, warnings, events } = await listened();
    const down = new Error('down');
    for (const service of ['pricing', 'unguarded']) {
      expect(await bulwark.call(service, { onResult }, () => Promise.resolve('ok'))).toBe('ok');
      const failing = bulwark.call(service, { onResult }, () => Promise.reject(down));
      await expect(failing).rejects.toBe(down);
    }
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).toEqual([]);
    expect(events).toHaveLength(4);
    expect(events).toMatchObject([
      { type: 'callback-failed', callback: 'onResult', policy: 'default/pricing@0' },
      { type: 'callback-failed', callback: 'onResult', policy: 'default/pricing@0' },
      { type: 'callback-failed', callback: 'onResult', policy: '' },
      { type: 'callback-failed', callback: 'onResult', policy: '' },
    ]);
    // Once a minute: it throws at every call.
    expect(warnings).toEqual([{ callback: 'onResult', reason: 'a listener', policy: 'default/pricing@0' }]);
  });

  it('is logged like a judge that throws', async () => {
    const { bulwark, warnings } = await listened();
    const judge = () => {
      throw new Error('a judge');
    };
    expect(await bulwark.call('pricing', { judge }, () => Promise.resolve('ok'))).toBe('ok');
    expect(warnings).toEqual([{ callback: 'judge', reason: 'a judge', policy: 'default/pricing@0' }]);
  });
});
