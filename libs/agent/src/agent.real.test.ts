import { BreakerState, type BreakerKey, type Resource, type Verdict } from '@bulwark/protocol';
import { eventually, freePort, startTcpProxy, temporaryDirectory } from '@bulwark/testing';
import { status as Status } from '@grpc/grpc-js';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { ProtocolPeer, type PeerOptions } from './agent-protocol.conformance.js';
import { connect, RefusedError, silentLogger, type Bulwark, type Logger } from './index.js';

const cleanups: (() => Promise<unknown> | void)[] = [];
const peers: ProtocolPeer[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  for (const peer of peers.splice(0)) {
    peer.stop();
    expect(peer.violations).toEqual([]);
  }
});

async function peerAt(options?: PeerOptions): Promise<ProtocolPeer> {
  const peer = await ProtocolPeer.start(options);
  peers.push(peer);
  return peer;
}

async function agentOf(
  controlPlane: string,
  more: Partial<Parameters<typeof connect>[0]> = {},
): Promise<Bulwark> {
  const bulwark = await connect({
    namespace: 'shop',
    service: 'storefront',
    instance: 'a-1',
    labels: { app: 'storefront' },
    controlPlane,
    logger: silentLogger,
    startWaitMs: 0,
    ...more,
  });
  cleanups.push(() => bulwark.close());
  return bulwark;
}

function policy(name: string, generation: number, spec: object): Resource {
  return {
    name: { kind: 'resiliencepolicies', namespace: 'shop', name },
    uid: `uid-${name}`,
    generation,
    createdAtMs: 1,
    object: Buffer.from(JSON.stringify({ metadata: { name, namespace: 'shop' }, spec })),
  };
}

const fraudBreaker = {
  target: { service: 'fraud' },
  timeout: { total: '5s' },
  circuitBreaker: {
    scope: 'Fleet',
    trip: { consecutiveFailures: 10 },
    quorum: { instances: 2, share: '20%' },
  },
};
const fraudKey: BreakerKey = { namespace: 'shop', policy: 'fraud', key: 'target' };
const version = (revision: number, era = 1) => ({ era, revision });

/** A connected agent with one policy for `fraud` in force. */
async function fleetOf(spec: object = fraudBreaker) {
  const peer = await peerAt();
  const bulwark = await agentOf(peer.address);
  await eventually(() => peer.connected);
  peer.update({ version: version(5), full: true, resources: [policy('fraud', 1, spec)] });
  await eventually(() => peer.acks.length === 1);
  return { peer, bulwark };
}

function verdict(epoch: number, parts: Partial<Verdict>): Verdict {
  return {
    key: fraudKey,
    version: { era: 1, token: 7, epoch },
    state: BreakerState.BREAKER_STATE_CLOSED,
    share: 0,
    permit: undefined,
    ttlMs: 30_000,
    forced: 0,
    forcedRemainingMs: 0,
    reason: 'consecutive-failures',
    cooldownMs: 5_000,
    ...parts,
  };
}

const ok = () => Promise.resolve('ok');
const fail = () => Promise.reject(new Error('down'));
const reasonOf = (bulwark: Bulwark) =>
  bulwark.call('fraud', {}, ok).then(
    () => 'admitted',
    (error: unknown) => (error as { reason?: string }).reason ?? String(error),
  );

async function upstream(handler: RequestListener): Promise<{ url: string; server: Server }> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

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
    await eventually(() => bulwark.readiness().reason.includes('ECONNREFUSED'));
    expect(bulwark.readiness()).toMatchObject({
      ready: false,
      reason: expect.stringMatching(/^no policy/) as string,
    });
    await expect(
      bulwark.call('fraud', { deadlineMs: 30 }, () => new Promise(() => undefined)),
    ).rejects.toMatchObject({ code: 'BULWARK_DEADLINE' });
  });

  it('starts from disk with no control plane, and holds what it held when one comes', async () => {
    const directory = temporaryDirectory();
    cleanups.push(() => directory.remove());
    const first = await peerAt();
    const before = await agentOf(first.address, { stateDir: directory.path, startWaitMs: 2_000 });
    first.update({ version: version(5), full: true, resources: [policy('fraud', 3, fraudBreaker)] });
    await eventually(() => first.acks.length === 1);
    await before.close();
    first.stop();

    const after = await agentOf(first.address, { stateDir: directory.path });
    expect(after.state()).toMatchObject({
      readiness: { ready: true, reason: expect.stringContaining('policies from disk') as string },
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
    cleanups.push(() => directory.remove());
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
    cleanups.push(() => directory.remove());
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
    cleanups.push(() => proxy.close());
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

describe('an agent and the fleet', () => {
  it('reports what it saw, at once on a failure, and answers a poll at once', async () => {
    const { peer, bulwark } = await fleetOf();
    await bulwark.call('fraud', {}, ok);
    await eventually(() => peer.counters('target')?.successes === 1, { withinMs: 2_000 });
    const began = performance.now();
    await bulwark.call('fraud', {}, fail).catch(() => undefined);
    await eventually(() => peer.counters('target')?.failures === 1, { everyMs: 1 });
    expect(performance.now() - began).toBeLessThan(100);
    expect(peer.counters('target')).toMatchObject({
      runFailures: 1,
      successesSinceFailure: 0,
      localState: 1,
    });
    const pollId = peer.poll([fraudKey]);
    const answer = await eventually(() => peer.reports.find((report) => report.pollId === pollId) ?? false, {
      everyMs: 1,
    });
    expect(answer.keys).toMatchObject([{ successes: 1, failures: 1 }]);
  });

  it('rejects under an open verdict, and shows its demand', async () => {
    const { peer, bulwark } = await fleetOf();
    peer.verdicts([verdict(1, { state: BreakerState.BREAKER_STATE_OPEN })]);
    await eventually(async () => (await reasonOf(bulwark)) === 'breaker-open', { everyMs: 1 });
    await eventually(() => (peer.counters('target')?.rejected ?? 0) >= 1, { withinMs: 100, everyMs: 1 });
    expect(peer.counters('target')?.inForce).toMatchObject({ epoch: 1 });
  });

  it('goes back to its own breaker when the fleet has no verdict for the key any more', async () => {
    const { peer, bulwark } = await fleetOf();
    peer.verdicts([verdict(1, { state: BreakerState.BREAKER_STATE_OPEN })]);
    await eventually(async () => (await reasonOf(bulwark)) === 'breaker-open');
    await eventually(() => peer.counters('target')?.inForce?.epoch === 1, { withinMs: 2_000 });
    peer.verdicts([], [fraudKey]);
    await eventually(async () => (await reasonOf(bulwark)) === 'admitted');
    await eventually(() => peer.counters('target')?.inForce === undefined, { withinMs: 2_000 });
  });

  it('keeps a verdict that came before the policy it belongs to', async () => {
    const peer = await peerAt();
    const bulwark = await agentOf(peer.address);
    await eventually(() => peer.connected);
    peer.verdicts([verdict(1, { state: BreakerState.BREAKER_STATE_OPEN })]);
    peer.update({ version: version(5), full: true, resources: [policy('fraud', 1, fraudBreaker)] });
    await eventually(() => peer.acks.length === 1);
    expect(await reasonOf(bulwark)).toBe('breaker-open');
  });

  it('makes exactly one probe when it holds the permit and none when another does', async () => {
    const { peer, bulwark } = await fleetOf();
    const halfOpen = { state: BreakerState.BREAKER_STATE_HALF_OPEN };
    const permit = (incarnation: string) => ({
      agent: bulwark.id,
      incarnation,
      remainingMs: 5_000,
      calls: 1,
    });
    peer.verdicts([verdict(1, { ...halfOpen, permit: permit('a former start of this agent') })]);
    await eventually(async () => (await reasonOf(bulwark)) === 'breaker-half-open');
    peer.verdicts([verdict(2, { ...halfOpen, permit: permit(bulwark.incarnation) })]);
    await eventually(() => bulwark.state().policies[0]?.breakers[0]?.epoch === 2);
    const reasons = await Promise.all(Array.from({ length: 8 }, () => reasonOf(bulwark)));
    expect(reasons.filter((reason) => reason === 'admitted')).toHaveLength(1);
    const probed = await eventually(() => peer.counters('target')?.probe ?? false, { withinMs: 1_000 });
    expect(probed).toMatchObject({ version: { epoch: 2 }, outcome: 1, calls: 1 });
  });

  it('admits the exact share while the fleet recovers', async () => {
    const { peer, bulwark } = await fleetOf();
    expect(await reasonOf(bulwark)).toBe('admitted');
    peer.verdicts([verdict(3, { state: BreakerState.BREAKER_STATE_RECOVERING, share: 0.25 })]);
    await eventually(() => bulwark.state().policies[0]?.breakers[0]?.state === 'recovering');
    const reasons = await Promise.all(Array.from({ length: 400 }, () => reasonOf(bulwark)));
    const admitted = reasons.filter((reason) => reason === 'admitted').length;
    expect(Math.abs(admitted - 100)).toBeLessThanOrEqual(1);
    await eventually(() => peer.counters('target')?.step?.offered === 400, { withinMs: 2_000 });
    expect(peer.counters('target')?.step?.admitted).toBe(admitted);
  });
});

describe('fetch under the policies', () => {
  const lastGood = {
    target: { service: '127.0.0.1' },
    timeout: { attempt: '1s', total: '3s' },
    retry: { maxAttempts: 2, backoff: { base: '1ms', max: '2ms' } },
    fallback: [{ lastGood: { maxAge: '120s' } }],
  };
  const guarded = async (spec: object) => {
    const peer = await peerAt();
    const bulwark = await agentOf(peer.address);
    await eventually(() => peer.connected);
    peer.update({ version: version(5), full: true, resources: [policy('upstream', 4, spec)] });
    await eventually(() => peer.acks.length === 1);
    return { peer, bulwark };
  };

  it('answers the last good answer with its age and why, and never another caller’s', async () => {
    let down = false;
    const { url } = await upstream((request, response) => {
      response.statusCode = down ? 503 : 200;
      response.end(`for ${request.headers.authorization ?? 'nobody'}`);
    });
    const { bulwark } = await guarded(lastGood);
    const as = (who: string) => ({ headers: { authorization: who } });
    const fresh = await bulwark.fetch(`${url}/recs`, as('ann'));
    expect([fresh.status, await fresh.text(), fresh.headers.get('bulwark-degraded')]).toEqual([
      200,
      'for ann',
      null,
    ]);
    down = true;
    const degraded = await bulwark.fetch(`${url}/recs`, as('ann'));
    expect([degraded.status, await degraded.text()]).toEqual([200, 'for ann']);
    expect(degraded.headers.get('bulwark-degraded')).toMatch(
      /^last-good;upstream="127\.0\.0\.1";reason="failure";age=0;policy="shop\/upstream@4"$/,
    );
    expect(degraded.headers.get('age')).toBe('0');
    const other = await bulwark.fetch(`${url}/recs`, as('bob'));
    expect([other.status, other.headers.get('bulwark-retry')]).toEqual([503, 'exhausted']);
  });

  it('hands deadline and attempt number down, and retries on a 503', async () => {
    const seen: (string | string[] | undefined)[][] = [];
    const { url } = await upstream((request, response) => {
      seen.push([request.headers['bulwark-deadline'], request.headers['bulwark-attempt']]);
      response.statusCode = seen.length === 1 ? 503 : 200;
      response.end('done');
    });
    const { bulwark } = await guarded(lastGood);
    const response = await bulwark.fetch(url);
    expect(response.status).toBe(200);
    expect(seen.map(([, attempt]) => attempt)).toEqual([undefined, '2']);
    for (const [deadline] of seen) expect(Number(deadline)).toBeGreaterThan(900);
  });

  it('answers a rejection as 503 with the reason and a problem document', async () => {
    const { url } = await upstream((_request, response) => response.end());
    const { peer, bulwark } = await guarded({ ...fraudBreaker, target: { service: '127.0.0.1' } });
    const key = { ...fraudKey, policy: 'upstream' };
    peer.verdicts([verdict(1, { key, state: BreakerState.BREAKER_STATE_OPEN })]);
    const rejected = await eventually(async () => {
      const response = await bulwark.fetch(url);
      return response.status === 503 && response;
    });
    expect(rejected.headers.get('bulwark-rejected')).toBe('breaker-open');
    expect(Number(rejected.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(rejected.headers.get('content-type')).toBe('application/problem+json');
    expect(await rejected.json()).toMatchObject({
      status: 503,
      reason: 'breaker-open',
      policy: 'shop/upstream@4',
    });
  });

  it('throws as fetch does when there is no policy and nobody listens', async () => {
    const { bulwark } = await guarded(lastGood);
    await expect(bulwark.fetch(`http://localhost:${await freePort()}/`)).rejects.toThrow(TypeError);
  });

  it('lets a dead leaf see at most three calls through three layers of three attempts', async () => {
    let leafCalls = 0;
    const leaf = await upstream((_request, response) => {
      leafCalls += 1;
      response.statusCode = 503;
      response.end();
    });
    const spec = { ...lastGood, retry: { ...lastGood.retry, maxAttempts: 3 }, fallback: undefined };
    const layer = async (below: string) => {
      const { bulwark } = await guarded(spec);
      return upstream((request, response) => {
        void bulwark.answering(
          (name) => request.headers[name] as string | undefined,
          async () => {
            const answer = await bulwark.fetch(below);
            response.writeHead(answer.ok ? 200 : 502, bulwark.answerHeaders());
            response.end();
          },
        );
      });
    };
    const two = await layer(leaf.url);
    const one = await layer(two.url);
    const { bulwark } = await guarded(spec);
    const answer = await bulwark.fetch(one.url);
    expect(answer.status).toBe(502);
    expect(answer.headers.get('bulwark-retry')).toBe('exhausted');
    expect(leafCalls).toBe(3);
  });
});
