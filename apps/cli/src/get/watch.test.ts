import { eventually } from '@bulwark/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeServer } from '../testing/fake-server.js';
import { startCli, type RunningCommand } from '../testing/run-cli.js';
import { sampleBreaker } from '../testing/samples.js';

describe('bulwark get -w', () => {
  let server: FakeServer;
  let running: RunningCommand | undefined;

  const watch = async (...args: string[]) => {
    running = startCli(['get', 'breakers', '-n', 'shop', '--server', server.url, '-w', ...args]);
    await eventually(() => server.openWatches === 1);
    return running;
  };
  const words = (text: string, count = 2) =>
    text
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/).slice(0, count).join(' '));

  beforeEach(async () => {
    server = await FakeServer.start();
    server.put('breakers', sampleBreaker('reco.1'));
  });

  afterEach(async () => {
    running?.interrupt();
    await running?.ended;
    await server.stop();
  });

  it('shows what is, then rows as they change, in the same columns', async () => {
    const command = await watch();
    server.put('breakers', sampleBreaker('reco.1', { state: 'Open' }));
    server.put('breakers', sampleBreaker('reco.1', { state: 'Recovering', share: '10%' }));
    await eventually(() => words(command.stdout()).length === 4);
    expect(words(command.stdout())).toEqual([
      'NAME STATE',
      'reco.1 Closed',
      'reco.1 Open',
      'reco.1 Recovering',
    ]);
    const shares = command.stdout().match(/ +(SHARE|100%|0%|10%)/g);
    expect(shares?.map(({ length }) => length)).toEqual([8, 8, 8, 8]);
    command.interrupt();
    expect((await command.ended).code).toBe(130);
  });

  it('events are named on request; a deletion is told in any case', async () => {
    const command = await watch('--output-watch-events');
    server.put('breakers', sampleBreaker('pay.1'));
    server.put('breakers', sampleBreaker('pay.1', { state: 'Open' }));
    server.remove('breakers', 'pay.1');
    await eventually(() => words(command.stdout()).length === 5);
    expect(words(command.stdout(), 3)).toEqual([
      'EVENT NAME STATE',
      'ADDED reco.1 Closed',
      'ADDED pay.1 Closed',
      'MODIFIED pay.1 Open',
      'DELETED pay.1 Open',
    ]);
  });

  it('a row in which only rates, ages and the note have changed is shown on request only', async () => {
    const busier = sampleBreaker('reco.1', {
      calls: { perSecond: 99, rejectedPerSecond: 1 },
      note: 'below minimumCalls: 3 of 20',
    });
    const command = await watch('-o', 'wide');
    server.put('breakers', busier);
    server.put('breakers', { ...busier, status: { ...busier.status, state: 'Open' } });
    await eventually(() => command.stdout().includes('Open  '));
    expect(words(command.stdout())).toEqual(['NAME STATE', 'reco.1 Closed', 'reco.1 Open']);
    command.interrupt();
    await command.ended;
    const all = await watch('--every-update');
    server.put('breakers', busier);
    server.put('breakers', sampleBreaker('reco.1'));
    await eventually(() => words(all.stdout()).length === 4);
  });

  it('a deletion is told on stderr when events are not shown', async () => {
    const command = await watch();
    server.remove('breakers', 'reco.1');
    await eventually(() => command.stderr() === 'breaker.bulwark.dev/reco.1 deleted\n');
  });

  it('-o json gives one document a line; with events, events', async () => {
    const command = await watch('-o', 'json');
    server.put('breakers', sampleBreaker('reco.1', { state: 'Open' }));
    await eventually(() => command.stdout().split('\n').length === 3);
    const states = command
      .stdout()
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { status: { state: string } }).status.state);
    expect(states).toEqual(['Closed', 'Open']);
    command.interrupt();
    await command.ended;
    const events = await watch('-o', 'json', '--output-watch-events', '--watch-only');
    server.remove('breakers', 'reco.1');
    await eventually(() => events.stdout() !== '');
    expect(JSON.parse(events.stdout())).toMatchObject({
      type: 'DELETED',
      object: { metadata: { name: 'reco.1' } },
    });
  });

  it('goes on from where it was when the stream ends', async () => {
    const command = await watch();
    server.endWatches();
    await eventually(() => server.openWatches === 1);
    server.put('breakers', sampleBreaker('reco.1', { state: 'Open' }));
    await eventually(() => words(command.stdout()).length === 3);
    expect(command.stderr()).toBe('');
    expect(server.seen.filter(({ query }) => query['watch'] === undefined)).toHaveLength(1);
  });

  it('lists again when its version is too old, and shows only what has changed', async () => {
    server.put('breakers', sampleBreaker('gone.1'));
    server.put('breakers', sampleBreaker('same.1'));
    const command = await watch('--output-watch-events');
    const before = command.stdout();
    let refused = false;
    server.intercept = ({ query }) => {
      if (query['watch'] === undefined || refused) return undefined;
      refused = true;
      server.remove('breakers', 'gone.1');
      server.put('breakers', sampleBreaker('reco.1', { state: 'Open' }));
      server.put('breakers', sampleBreaker('new.1'));
      return { code: 410, body: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' } };
    };
    server.endWatches({ kind: 'Status', code: 410, reason: 'Expired', message: 'too old' });
    await eventually(() => words(command.stdout()).length === words(before).length + 3);
    expect(words(command.stdout().slice(before.length), 3)).toEqual([
      'DELETED gone.1 Closed',
      'MODIFIED reco.1 Open',
      'ADDED new.1 Closed',
    ]);
    expect(command.stderr()).toBe('');
  });

  it('waits for a server that is away, says so once, and goes on', async () => {
    const command = await watch();
    let away = true;
    server.intercept = () =>
      away ? { code: 503, body: { kind: 'Status', code: 503, reason: 'ServiceUnavailable' } } : undefined;
    server.endWatches();
    await eventually(() => command.stderr().includes('Trying again'));
    await eventually(() => server.seen.length > 4);
    away = false;
    await eventually(() => command.stderr().endsWith('Connected again.\n'));
    server.put('breakers', sampleBreaker('reco.1', { state: 'Open' }));
    await eventually(() => words(command.stdout()).length === 3);
    expect(command.stderr().match(/Trying again/g)).toHaveLength(1);
  });

  it('ends quietly when nobody reads any more', async () => {
    const command = await watch();
    command.closeOutput();
    expect(await command.ended).toMatchObject({ code: 0, stderr: '' });
    await eventually(() => server.openWatches === 0);
  });

  it('one object is watched by its name, and must be there', async () => {
    running = startCli(['get', 'br/no', '-n', 'shop', '-w', '--server', server.url]);
    expect(await running.ended).toMatchObject({
      code: 1,
      stderr: 'Error from server (NotFound): breakers.bulwark.dev "no" not found\n',
    });
    running = startCli(['get', 'br,agents', '-w', '--server', server.url]);
    expect((await running.ended).code).toBe(64);
  });
});
