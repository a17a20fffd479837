/** What the tests of a connected agent share. No test framework in here. */
import { BreakerState, type BreakerKey, type Resource, type Verdict } from '@bulwark/protocol';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ProtocolPeer, type PeerOptions } from './agent-protocol.conformance.js';
import { connect, silentLogger, type Bulwark } from './index.js';

const cleanups: (() => Promise<unknown> | void)[] = [];
const peers: ProtocolPeer[] = [];
/** Runs when the test ends, the last one first. */
export function atEnd(cleanup: () => Promise<unknown> | void): void {
  cleanups.push(cleanup);
}

/** Ends everything; answers what agents did against the protocol. */
export async function cleanUp(): Promise<string[]> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  return peers.splice(0).flatMap((peer) => {
    peer.stop();
    return peer.violations;
  });
}

export async function peerAt(options?: PeerOptions): Promise<ProtocolPeer> {
  const peer = await ProtocolPeer.start(options);
  peers.push(peer);
  return peer;
}

export async function agentOf(
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
  atEnd(() => bulwark.close());
  return bulwark;
}

export function policy(name: string, generation: number, spec: object): Resource {
  return {
    name: { kind: 'resiliencepolicies', namespace: 'shop', name },
    uid: `uid-${name}`,
    generation,
    createdAtMs: 1,
    object: Buffer.from(JSON.stringify({ metadata: { name, namespace: 'shop' }, spec })),
  };
}

export const fraudBreaker = {
  target: { service: 'fraud' },
  timeout: { total: '5s' },
  circuitBreaker: {
    scope: 'Fleet',
    trip: { consecutiveFailures: 10 },
    quorum: { instances: 2, share: '20%' },
  },
};
export const fraudKey: BreakerKey = { namespace: 'shop', policy: 'fraud', key: 'target' };
export const version = (revision: number, era = 1) => ({ era, revision });

/** A connected agent with one policy for `fraud` in force. */
export async function fleetOf(spec: object = fraudBreaker) {
  const peer = await peerAt();
  const bulwark = await agentOf(peer.address);
  await peer.when(() => peer.connected);
  peer.update({ version: version(5), full: true, resources: [policy('fraud', 1, spec)] });
  await peer.when(() => peer.acks.length === 1);
  return { peer, bulwark };
}

export function verdict(epoch: number, parts: Partial<Verdict>): Verdict {
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

export const ok = () => Promise.resolve('ok');
export const fail = () => Promise.reject(new Error('down'));
export const reasonOf = (bulwark: Bulwark) =>
  bulwark.call('fraud', {}, ok).then(
    () => 'admitted',
    (error: unknown) => (error as { reason?: string }).reason ?? String(error),
  );

export async function upstream(handler: RequestListener): Promise<{ url: string; server: Server }> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}
