import { randomBytes } from 'node:crypto';
import type { DeciderOptions, FleetDecider } from '@bulwark/fleet';
import type { Store } from '@bulwark/store';
import type { Logger } from '@bulwark/telemetry';
import { findResource, type Resource } from '@bulwark/views';
import type { ServerConfig } from '../config/server-config.js';
import { AgentRegistry } from '../distribution/agent-registry.js';
import { Distribution } from '../distribution/distribution.js';
import { UpdateEncoder } from '../distribution/update-bytes.js';
import { AgentRelay } from '../fleet/agent-relay.js';
import { VERDICT_PREFIX } from '../fleet/breaker-name.js';
import { Fleet } from '../fleet/fleet.js';
import { ForceApi } from '../fleet/force-api.js';
import { CLAIM_PREFIX, MEMBER_PREFIX, Members } from '../fleet/members.js';
import { PeerClients } from '../fleet/peer-clients.js';
import { PeerTallies } from '../fleet/peer-tallies.js';
import { VerdictBoard } from '../fleet/verdict-board.js';
import { VerdictFanout } from '../fleet/verdict-fanout.js';
import { ResourceApi } from '../http/resource-api.js';
import { EraKeeper, META_PREFIX } from '../index/era-keeper.js';
import { ObjectCollection } from '../index/object-collection.js';
import { StoreMirror } from '../index/store-mirror.js';
import { measuredStore } from '../metrics/measured-store.js';
import { Metrics } from '../metrics/metrics.js';
import type { ApiObject } from '../objects/api-object.js';
import { ObjectStore } from '../objects/object-store.js';
import { ObjectWrites } from '../objects/object-writes.js';
import { policyKind } from '../objects/policy-kind.js';
import { PolicyCatalog, POLICY_PREFIX } from '../policies/policy-catalog.js';
import { PolicyObjects } from '../policies/policy-objects.js';
import { StoredPolicies } from '../policies/stored-policies.js';
import { LiveObjects } from '../virtual/live-objects.js';
import { RefreshedKind } from '../virtual/refreshed-kind.js';
import { VirtualCollection } from '../virtual/virtual-collection.js';
import { Health } from './health.js';

export interface PartsInput {
  readonly config: ServerConfig;
  readonly store: Store;
  readonly logger: Logger;
  /** Where other replicas reach this one's gRPC port. */
  readonly grpc: string;
  createDecider(options: DeciderOptions): FleetDecider;
}

export type Parts = ReturnType<typeof buildParts>;

/** Puts the replica together. Nothing runs yet. */
export function buildParts(input: PartsInput) {
  const { config, logger } = input;
  const metrics: Metrics = new Metrics({
    agents: () => live.phases(),
    breakers: () => countBreakers(fleet, live),
    watches: () => api.openWatches,
    deciding: () => fleet.decides,
  });
  const store = measuredStore(input.store, (operation, result, seconds) =>
    metrics.store.observe({ operation, result }, seconds),
  );
  const mirrors = buildMirrors(store, logger);
  const era = new EraKeeper(store, mirrors.meta, logger);
  const catalog = new PolicyCatalog(mirrors.policies, logger);
  const members = new Members({
    self: config.id,
    members: mirrors.members,
    claims: mirrors.claims,
    peers: config.peers,
  });
  const peers = new PeerClients();
  const tallies = new PeerTallies(members, peers);
  const registry = new AgentRegistry();
  const board = new VerdictBoard();
  const counted = (result: string, count: number): void => metrics.reports.inc({ result }, count);
  const relay: AgentRelay = new AgentRelay({ registry, board, counted, fanout: () => fanout });
  const distribution = new Distribution({
    replica: config.id,
    catalog,
    mirror: mirrors.policies,
    era,
    registry,
    encoder: new UpdateEncoder(randomBytes(4).toString('hex')),
    maxAgents: config.maxAgents,
    logger,
    metrics: {
      acknowledged: (seconds) => metrics.push.observe(seconds),
      refusedResources: (count) => metrics.refusals.inc(count),
    },
    listener: relay,
    place: () => members.place(),
    serviceAgentsElsewhere: (namespace, service) => tallies.serviceAgents(namespace, service),
  });
  const fanout = new VerdictFanout({ registry, distribution, board });
  const fleet: Fleet = new Fleet({
    self: { id: config.id, grpc: input.grpc },
    store,
    era,
    catalog,
    members,
    peers,
    relay,
    board,
    fanout,
    logger,
    createDecider: (options) => input.createDecider(options),
    changed: () => breakers.touch(),
    transition: (from, to, reason) => metrics.transitions.inc({ from, to, reason }),
    counted,
  });
  const live = new LiveObjects({
    replica: config.id,
    catalog,
    registry,
    distribution,
    fleet,
    verdicts: mirrors.verdicts,
    members,
    peers,
  });
  const breakers: RefreshedKind = virtualKind(
    'breakers',
    () => live.breakers(),
    (object) => object,
  );
  const agents = virtualKind('agents', () => live.agents(), withoutTimes);
  const policies = buildPolicies({ config, store, catalog, mirrors, live, tallies, distribution });
  const api = new ResourceApi([policies.served, breakers, agents], config.maxWatches);
  const health = new Health(input.store, () =>
    Object.entries(mirrors).map(([name, mirror]) => ({ name, loaded: mirror.loaded })),
  );
  const force = new ForceApi({
    fleet,
    policy: (namespace, name) => policies.served.read(namespace, name),
    read: (namespace, name) => breakers.read(namespace, name),
  });
  return {
    ...{
      config,
      logger,
      store,
      metrics,
      mirrors,
      era,
      catalog,
      members,
      peers,
      tallies,
      registry,
      relay,
      distribution,
    },
    ...{ fleet, live, breakers, agents, policies, api, health, force },
  };
}

function buildMirrors(store: Store, logger: Logger) {
  const mirror = (prefix: string): StoreMirror => new StoreMirror({ store, prefix, logger });
  return {
    policies: mirror(POLICY_PREFIX),
    verdicts: mirror(VERDICT_PREFIX),
    members: mirror(MEMBER_PREFIX),
    claims: mirror(CLAIM_PREFIX),
    meta: mirror(META_PREFIX),
  };
}

interface PolicyParts {
  readonly config: ServerConfig;
  readonly store: Store;
  readonly catalog: PolicyCatalog;
  readonly mirrors: ReturnType<typeof buildMirrors>;
  readonly live: LiveObjects;
  readonly tallies: PeerTallies;
  readonly distribution: Distribution;
}

function buildPolicies({ config, store, catalog, mirrors, live, tallies, distribution }: PolicyParts) {
  const collection = new ObjectCollection();
  const objects = new PolicyObjects({
    mirror: mirrors.policies,
    catalog,
    collection,
    counts: (policy) => tallies.counts(live.ownTally(), policy),
    countsVersion: () => `${distribution.stateVersion} ${tallies.version}`,
    now: () => new Date(),
  });
  const kind = policyKind({
    defaultRollout: config.defaultRollout,
    neighbours: (policy) => {
      const by = catalog.shadowedBy(policy);
      return by.length === 0 ? [] : [`Shadowed: every call it matches is guarded by ${by.join(', ')}`];
    },
  });
  const objectStore = new ObjectStore(store, kind);
  const writes = new ObjectWrites(objectStore, () => new Date());
  const resource = named('resiliencepolicies');
  const served = new StoredPolicies({
    resource,
    collection,
    mirror: mirrors.policies,
    objects,
    store: objectStore,
    writes,
  });
  return { objects, served };
}

function virtualKind(
  plural: string,
  load: () => ReturnType<LiveObjects['agents']>,
  significant: (object: ApiObject) => unknown,
): RefreshedKind {
  const virtual = new VirtualCollection({ startUnixMs: Date.now(), significant });
  return new RefreshedKind({ resource: named(plural), virtual, load });
}

function named(plural: string): Resource {
  const resource = findResource(plural);
  if (resource === undefined) throw new Error(`no resource is called ${plural}`);
  return resource;
}

/** Times of the last message change all the time and say nothing. */
function withoutTimes(object: ApiObject): unknown {
  return { ...object, status: { ...(object.status as object), lastSeen: '', lagMs: 0 } };
}

function countBreakers(fleet: Fleet, live: LiveObjects): Record<string, number> {
  const counts: Record<string, number> = { Closed: 0, Open: 0, HalfOpen: 0, Recovering: 0 };
  if (!fleet.decides) return counts;
  for (const object of live.own('breakers', '')) {
    const { state } = (object as ApiObject).status as { state: string };
    counts[state] = (counts[state] ?? 0) + 1;
  }
  return counts;
}
