import { eventually, freePort, startTcpProxy, temporaryDirectory } from '@bulwark/testing';
import { status as Status } from '@grpc/grpc-js';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { BreakerState } from '@bulwark/protocol';
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
  verdict,
  version,
} from './agent-fixture.js';
import { RefusedError, silentLogger, type Logger } from './index.js';

afterEach(async () => {
  expect(await cleanUp()).toEqual([]);
});

describe('an agent and its control plane', () => {
  it('says who it is, takes the snapshot, and acknowledges once it is in force', async () => {
    const { peer, bulwark } = await fleetOf();
    expect(peer.hellos[0]).toMatchObject({
      namespace: 'shop',
      service: 'storefront',
      instance: 'a-1',
      incarnation: bulwark.incarnation,
      labels: { app: 'storefront' },
      connection: 1,
      protocol: 1,
    });
    expect(peer.acks[0]).toMatchObject({
      version: version(5),
      resources: [{ generation: 1, accepted: true }],
    });
    expect(bulwark.readiness()).toEqual({ ready: true, reason: '' });
    expect(bulwark.state().policies).toMatchObject([
      { policy: 'shop/fraud', generation: 1, service: 'fraud' },
    ]);
  });

  it('puts the good resources of an update in force and refuses the bad one with the reason', async () => {
    const { peer, bulwark } = await fleetOf();
    peer.update({
      version: version(6),
      resources: [
        policy('fraud', 2, { ...fraudBreaker, timeout: { total: 'soon' } }),
        policy('cart', 1, { target: { service: 'cart' }, timeout: { total: '1s' } }),
      ],
    });
    await eventually(() => peer.acks.length === 2);
    const statuses = peer.acks[1]?.resources ?? [];
    expect(statuses.map((status) => [status.name?.name, status.generation, status.accepted])).toEqual([
      ['fraud', 2, false],
      ['cart', 1, true],
    ]);
    expect(statuses[0]?.reason).toContain('spec.timeout.total');
    const { policies, refused } = bulwark.state();
    expect(policies.map((view) => [view.policy, view.generation])).toEqual([
      ['shop/fraud', 1],
      ['shop/cart', 1],
    ]);
    expect(refused['shop/fraud']).toContain('generation 2');
  });

  it('never runs a call under the old policy once it has acknowledged the new one', async () => {
    const { peer, bulwark } = await fleetOf();
    for (let generation = 2; generation <= 30; generation += 1) {
      const total = `${1_000 + generation}ms`;
      peer.update({
        version: version(5 + generation),
        resources: [policy('fraud', generation, { ...fraudBreaker, timeout: { total } })],
      });
      await eventually(() => peer.acks.length === generation, { everyMs: 1 });
      const timeoutMs = await bulwark.call('fraud', {}, (attempt) => Promise.resolve(attempt.timeoutMs));
      expect(timeoutMs).toBeCloseTo(1_000 + generation, 3);
    }
  });

  it('removes what a delta removes, and its limits no longer apply', async () => {
    const { peer, bulwark } = await fleetOf();
    peer.verdicts([verdict(1, { state: BreakerState.BREAKER_STATE_OPEN })]);
    await eventually(async () => (await reasonOf(bulwark)) === 'breaker-open');
    peer.update({ version: version(6), removed: [policy('fraud', 1, {}).name!] });
    await eventually(() => peer.acks.length === 2);
    expect(await reasonOf(bulwark)).toBe('admitted');
  });

  it('refuses to go back to an older version and says what it holds', async () => {
    const { peer, bulwark } = await fleetOf();
    peer.update({ version: version(4), full: true, resources: [policy('fraud', 9, fraudBreaker)] });
    await eventually(() => peer.acks.length === 2);
    expect(peer.acks[1]).toMatchObject({ version: version(5), resources: [{ accepted: false }] });
    expect(bulwark.state().policies).toMatchObject([{ generation: 1 }]);
    peer.update({ version: version(1, 2), full: true, resources: [policy('fraud', 2, fraudBreaker)] });
    await eventually(() => peer.acks.length === 3);
    expect(bulwark.state()).toMatchObject({ version: version(1, 2), policies: [{ generation: 2 }] });
  });

  it('lets calls pass without any control plane, and says that it has no policy', async () => {
    const port = await freePort();
    const bulwark = await agentOf(`127.0.0.1:${port}`);
    expect(await bulwark.call('fraud', {}, ok)).toBe('ok');
    await eventually(() => bulwark.readiness().reason.endsWith(': connection refused'));
    expect(bulwark.readiness()).toMatchObject({
      ready: false,
      reason: expect.stringMatching(/^no policy/) as string,
    });
    await expect(
      bulwark.call('fraud', { deadlineMs: 30 }, () => new Promise(() => undefined)),
    ).rejects.toMatchObject({ code: 'BULWARK_DEADLINE' });
  });

  it('says once that no policy is for it, and lets its calls pass', async () => {
    const warnings: string[] = [];
    const logger: Logger = { ...silentLogger, warn: (_fields, message) => warnings.push(message) };
    const peer = await peerAt();
    const bulwark = await agentOf(peer.address, { logger, labels: { app: 'another' } });
    await peer.when(() => peer.connected);
    const spec = { ...fraudBreaker, callers: { matchLabels: { app: 'storefront' } } };
    for (const generation of [1, 2]) {
      peer.update({ version: version(generation), resources: [policy('fraud', generation, spec)] });
      await peer.when(() => peer.acks.length === generation);
    }
    expect(await reasonOf(bulwark)).toBe('admitted');
    expect(warnings).toEqual([expect.stringContaining('no policy is for this agent') as string]);
    expect(bulwark.readiness()).toEqual({
      ready: true,
      reason: 'no policy: the control plane has none for this agent, its calls pass unguarded',
    });
  });

  it('warns each time its last policies are taken away, and does not speak of known ones then', async () => {
    const warnings: [object, string][] = [];
    const logger: Logger = { ...silentLogger, warn: (fields, message) => warnings.push([fields, message]) };
    const peer = await peerAt();
    const bulwark = await agentOf(peer.address, { logger });
    await peer.when(() => peer.connected);
    const update = async (revision: number, names: string[]) => {
      const resources = names.map((name) => policy(name, 1, { ...fraudBreaker, target: { service: name } }));
      peer.update({ version: version(revision), full: true, resources });
      await peer.when(() => peer.acks.length === revision);
    };
    await update(1, ['fraud', 'pricing', 'carts']);
    await update(2, ['fraud']);
    expect(warnings).toEqual([]);
    await update(3, []);
    expect(bulwark.readiness()).toEqual({
      ready: true,
      reason: 'no policy: the control plane has none for this agent, its calls pass unguarded',
    });
    await update(4, []);
    await update(5, ['fraud', 'pricing']);
    expect(bulwark.readiness()).toEqual({ ready: true, reason: '' });
    await update(6, []);
    peer.stop();
    await eventually(() => warnings.length === 3);
    expect(warnings.map(([, message]) => message)).toEqual([
      'the control plane took away the only policy of this agent: its calls pass unguarded',
      'the control plane took away all 2 policies of this agent: its calls pass unguarded',
      'lost the control plane; there is no policy for this agent, its calls pass unguarded',
    ]);
    expect(warnings[1]?.[0]).toMatchObject({ namespace: 'shop', service: 'storefront', taken: 2 });
    expect(await reasonOf(bulwark)).toBe('admitted');
  });

  it('starts from disk with no control plane, and holds what it held when one comes', async () => {
    const directory = temporaryDirectory();
    atEnd(() => directory.remove());
    const first = await peerAt();
    const before = await agentOf(first.address, { stateDir: directory.path, startWaitMs: 2_000 });
    first.update({ version: version(5), full: true, resources: [policy('fraud', 3, fraudBreaker)] });
    await eventually(() => first.acks.length === 1);
    await before.close();
    first.stop();

    const after = await agentOf(first.address, { stateDir: directory.path });
    expect(after.state()).toMatchObject({
      readiness: {
        ready: true,
        reason: expect.stringMatching(
          /^policies from disk, kept \d+s ago; not connected to the control plane at 127\.0\.0\.1:\d+/,
        ) as string,
      },
      policies: [{ policy: 'shop/fraud', generation: 3 }],
    });
    const second = await peerAt({ port: first.port });
    await eventually(() => second.connected);
    expect(second.hellos[0]).toMatchObject({
      held: version(5),
      resources: [{ name: { name: 'fraud' }, uid: 'uid-fraud', generation: 3 }],
    });
    expect(second.hellos[0]?.incarnation).not.toBe(first.hellos[0]?.incarnation);
  });

  it('takes nothing of a damaged file on disk and reports it', async () => {
    const directory = temporaryDirectory();
    atEnd(() => directory.remove());
    const peer = await peerAt();
    const before = await agentOf(peer.address, { stateDir: directory.path });
    await eventually(() => peer.connected);
    peer.update({ version: version(5), full: true, resources: [policy('fraud', 3, fraudBreaker)] });
    await eventually(() => peer.acks.length === 1);
    await before.close();
    const file = join(directory.path, 'snapshot.json');
    const text = await readFile(file);
    await writeFile(file, text.subarray(0, text.length - 10));
    const errors: string[] = [];
    const logger: Logger = { ...silentLogger, error: (_fields, message) => errors.push(message) };
    const after = await agentOf(`127.0.0.1:${await freePort()}`, { stateDir: directory.path, logger });
    expect(after.state()).toMatchObject({ policies: [], readiness: { ready: false } });
    expect(after.state().diskProblem).toContain('truncated');
    expect(errors.join()).toContain('nothing of the file is taken');
  });

  it('acknowledges and goes on when the disk cannot be written', async () => {
    const directory = temporaryDirectory();
    atEnd(() => directory.remove());
    await writeFile(join(directory.path, 'state'), 'a file');
    const peer = await peerAt();
    const bulwark = await agentOf(peer.address, { stateDir: join(directory.path, 'state') });
    await eventually(() => peer.connected);
    peer.update({ version: version(5), full: true, resources: [policy('fraud', 1, fraudBreaker)] });
    await eventually(() => peer.acks.length === 1);
    expect(peer.acks[0]?.resources[0]?.accepted).toBe(true);
    expect(bulwark.state().diskProblem).toMatch(/EEXIST|ENOTDIR/);
  });

  it('comes back after its control plane was killed, with the next connection number', async () => {
    const { peer, bulwark } = await fleetOf();
    peer.stop();
    await eventually(() => bulwark.state().controlPlane.state === 'waiting');
    expect(await bulwark.call('fraud', {}, ok)).toBe('ok');
    const again = await peerAt({ port: peer.port });
    await eventually(() => again.connected);
    expect(again.hellos[0]).toMatchObject({ incarnation: bulwark.incarnation, held: version(5) });
    expect(again.hellos[0]?.connection).toBeGreaterThan(1);
  });

  it('goes to another replica when its own is leaving', async () => {
    const one = await peerAt({ replica: 'one' });
    const two = await peerAt({ replica: 'two' });
    const bulwark = await agentOf(`${one.address},${two.address}`);
    const [from, to] = await eventually(() => {
      if (one.connected) return [one, two] as const;
      return two.connected && ([two, one] as const);
    });
    from.drain(50);
    await eventually(() => to.connected);
    await eventually(() => !from.connected);
    expect(bulwark.state().controlPlane.state).toBe('connected');
  });

  it('notices a connection that died without a word within five seconds', async () => {
    const peer = await peerAt();
    const proxy = await startTcpProxy({ target: peer.address });
    atEnd(() => proxy.close());
    const bulwark = await agentOf(proxy.address);
    await eventually(() => peer.connected);
    proxy.pause();
    const began = performance.now();
    await eventually(() => bulwark.state().controlPlane.state !== 'connected', { withinMs: 6_000 });
    expect(performance.now() - began).toBeLessThan(5_200);
  });

  it('says what to do when it is refused, and goes on under what it knows', async () => {
    const refuse = () => ({ code: Status.ALREADY_EXISTS, details: 'shop/storefront/a-1 is connected' });
    const peer = await peerAt({ refuse });
    const errors: object[] = [];
    const logger: Logger = { ...silentLogger, error: (fields) => errors.push(fields) };
    const bulwark = await agentOf(peer.address, { logger });
    await eventually(() => bulwark.state().controlPlane.state === 'refused');
    await eventually(() => peer.hellos.length === 2, { withinMs: 8_000 });
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatchObject({ hint: expect.stringContaining('another instance id') as string });
    expect(bulwark.readiness().reason).toContain('ALREADY_EXISTS');
    await expect(agentOf(peer.address, { failOnRefusal: true, startWaitMs: 3_000 })).rejects.toThrow(
      RefusedError,
    );
  });
});
