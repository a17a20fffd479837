import { BreakerState } from '@bulwark/protocol';
import { eventually, temporaryDirectory } from '@bulwark/testing';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import {
  agentOf,
  atEnd,
  cleanUp,
  fleetOf,
  fraudBreaker,
  ok,
  peerAt,
  policy,
  reasonOf,
  upstream,
  verdict,
  version,
} from './agent-fixture.js';
import { ArgumentError, connect, silentLogger } from './index.js';

afterEach(async () => {
  expect(await cleanUp()).toEqual([]);
});

const document = (spec: object) => ({
  apiVersion: 'bulwark.dev/v1',
  kind: 'ResiliencePolicy',
  metadata: { name: 'fraud' },
  spec,
});
const never = () => new Promise<string>(() => undefined);

describe('cold start: nothing on disk and no control plane', () => {
  it('guards by the bootstrap’s policies and says that they are', async () => {
    const bulwark = await agentOf('127.0.0.1:1', { bootstrap: [document(fraudBreaker)] });
    for (let count = 0; count < 10; count += 1) {
      await bulwark.call('fraud', {}, () => Promise.reject(new Error('down'))).catch(() => undefined);
    }
    expect(await reasonOf(bulwark)).toBe('breaker-open');
    await eventually(() => bulwark.readiness().reason.includes('connection refused'));
    expect(bulwark.readiness()).toMatchObject({
      ready: true,
      reason: expect.stringMatching(/^policies of the bootstrap; not connected/) as string,
    });
  });

  it('needs no control plane at all where there is a bootstrap, and never looks for one', async () => {
    const bulwark = await connect({
      service: 'storefront',
      bootstrap: [document(fraudBreaker)],
      logger: silentLogger,
    });
    atEnd(() => bulwark.close());
    expect(await bulwark.call('fraud', {}, (attempt) => Promise.resolve(attempt.timeoutMs))).toBe(5_000);
    expect(bulwark.readiness()).toEqual({
      ready: true,
      reason: 'policies of the bootstrap; no control plane is named',
    });
    expect(bulwark.state().controlPlane).toMatchObject({ state: 'none', address: '', connections: 0 });
  });

  it('refuses a bootstrap that cannot be used, with every problem, also where it is not needed today', async () => {
    const wrong = document({ ...fraudBreaker, timeout: { total: 'soon' }, retri: {} });
    const refused = connect({ service: 'storefront', bootstrap: [wrong], logger: silentLogger });
    await expect(refused).rejects.toThrow(ArgumentError);
    await expect(refused).rejects.toThrow(/timeout\.total[^]*retri/);
  });

  it('without a bootstrap lets calls pass under the caller’s deadline alone; readiness says no policy', async () => {
    const bulwark = await agentOf('127.0.0.1:1');
    expect(bulwark.readiness().ready).toBe(false);
    expect(bulwark.readiness().reason).toMatch(/^no policy/);
    const timeouts: number[] = [];
    const note = (attempt: { timeoutMs: number }) => Promise.resolve(timeouts.push(attempt.timeoutMs));
    await bulwark.call('fraud', {}, note);
    await bulwark.call('fraud', { deadlineMs: 40 }, note);
    await bulwark.answering(
      (name) => (name === 'bulwark-deadline' ? '2000' : undefined),
      () => bulwark.call('fraud', {}, note),
    );
    expect(timeouts.slice(0, 2)).toEqual([Infinity, 40]);
    expect(timeouts[2]).toBeGreaterThan(1_500);
    expect(timeouts[2]).toBeLessThanOrEqual(2_000);
    const late = bulwark.call('fraud', { deadlineMs: 20 }, never);
    await expect(late).rejects.toMatchObject({ code: 'BULWARK_DEADLINE' });
  });

  it('takes the control plane’s policies in the bootstrap’s place when one comes', async () => {
    const peer = await peerAt();
    const bootstrap = [document({ target: { service: 'fraud' }, timeout: { total: '7s' } })];
    const bulwark = await agentOf(peer.address, { bootstrap });
    await peer.when(() => peer.connected);
    expect(peer.hellos[0]).toMatchObject({ held: undefined, resources: [] });
    peer.update({ version: version(5), full: true, resources: [policy('fraud', 1, fraudBreaker)] });
    await peer.when(() => peer.acks.length === 1);
    expect(await bulwark.call('fraud', {}, (attempt) => Promise.resolve(attempt.timeoutMs))).toBe(5_000);
  });
});

describe('a bypass', () => {
  it('lets every call pass an open breaker, marks and deadline still travel, and state says so', async () => {
    const directory = temporaryDirectory();
    atEnd(() => directory.remove());
    const seen: (string | string[] | undefined)[][] = [];
    const { url } = await upstream((request, response) => {
      seen.push([request.headers['bulwark-deadline'], request.headers['bulwark-attempt']]);
      response.statusCode = 503;
      response.end();
    });
    const peer = await peerAt();
    const bulwark = await agentOf(peer.address, { stateDir: directory.path });
    await peer.when(() => peer.connected);
    const spec = { ...fraudBreaker, target: { service: '127.0.0.1' } };
    peer.update({ version: version(5), full: true, resources: [policy('fraud', 1, spec)] });
    await peer.when(() => peer.acks.length === 1);
    peer.verdicts([verdict(1, { state: BreakerState.BREAKER_STATE_OPEN })]);
    const fetch = () => bulwark.fetch(url, { bulwark: { deadlineMs: 3_000 } });
    await eventually(async () => (await fetch()).headers.get('bulwark-rejected') === 'breaker-open');
    expect(bulwark.state().bypass).toBeUndefined();

    await writeFile(join(directory.path, 'bypass'), '10m\nthe breaker is wrong');
    await eventually(() => bulwark.state().bypass !== undefined, { withinMs: 4_000 });
    seen.length = 0;
    const answer = await bulwark.answering((name) => (name === 'bulwark-attempt' ? '2' : undefined), fetch);
    expect([answer.status, answer.headers.get('bulwark-rejected')]).toEqual([503, null]);
    expect(seen).toEqual([[expect.stringMatching(/^(3000|2\d\d\d)$/) as string, '2']]);
    expect(bulwark.state().bypass).toMatchObject({ reason: 'the breaker is wrong' });
    expect(bulwark.readiness()).toMatchObject({
      ready: true,
      reason: expect.stringMatching(/^bypass until .*the breaker is wrong/) as string,
    });
    await rm(join(directory.path, 'bypass'));
    await eventually(async () => (await fetch()).headers.get('bulwark-rejected') === 'breaker-open', {
      withinMs: 4_000,
    });
  });

  it('leaves calls under way as they began: they give back what they took', async () => {
    const spec = { ...fraudBreaker, bulkhead: { maxConcurrent: 1, maxQueued: 0, maxWait: '1s' } };
    const { bulwark } = await fleetOf(spec);
    let finish: ((value: string) => void) | undefined;
    const running = bulwark.call('fraud', {}, () => new Promise<string>((resolve) => (finish = resolve)));
    expect(await reasonOf(bulwark)).toBe('bulkhead-full');
    bulwark.bypass(60_000, 'a test');
    expect(await reasonOf(bulwark)).toBe('admitted');
    finish?.('done');
    expect(await running).toBe('done');
    bulwark.bypass(0);
    expect(await bulwark.call('fraud', {}, ok)).toBe('ok');
    expect(bulwark.state().policies[0]?.totals).toMatchObject({ inFlight: 0, calls: 3 });
  });

  it('holds before the first call when the file is there at the start', async () => {
    const directory = temporaryDirectory();
    atEnd(() => directory.remove());
    await mkdir(directory.path, { recursive: true });
    const bypassFile = join(directory.path, 'out');
    await writeFile(bypassFile, '');
    const impossible = { target: { service: 'fraud' }, timeout: { total: '10ms' } };
    const bulwark = await agentOf('127.0.0.1:1', { bypassFile, bootstrap: [document(impossible)] });
    const slow = () => new Promise<string>((resolve) => setTimeout(() => resolve('slow'), 60));
    expect(await bulwark.call('fraud', {}, slow)).toBe('slow');
  });
});
