import type { DeciderOptions, FleetDecider } from '@bulwark/fleet';
import type { Store } from '@bulwark/store';
import type { Logger } from '@bulwark/telemetry';
import type { Server } from '@grpc/grpc-js';
import { formatAddress, type ServerConfig } from '../config/server-config.js';
import { addAgentService } from '../distribution/agent-stream.js';
import { LeasedKey } from '../fleet/leased-key.js';
import { MEMBER_PREFIX, memberText } from '../fleet/members.js';
import { addPeerService } from '../fleet/peer-service.js';
import { createHttpApp, type HttpApp } from '../http/http-app.js';
import { waitUntil, within } from './closing.js';
import { createGrpcServer, listenGrpc } from './grpc-server.js';
import { listenError } from './listen-error.js';
import { buildParts, type Parts } from './replica-parts.js';

export interface ReplicaOptions {
  readonly config: ServerConfig;
  readonly store: Store;
  readonly logger: Logger;
  createDecider(options: DeciderOptions): FleetDecider;
}

/** What a shutdown left behind. */
export interface Farewell {
  /** Everything that was begun was finished. */
  readonly clean: boolean;
  readonly accepted: number;
  readonly completed: number;
  readonly refused: number;
  readonly unfinished: number;
}

/** A running replica. */
export interface Replica {
  /** "HOST:PORT", with the real port where 0 was asked for. */
  readonly http: string;
  readonly grpc: string;
  readonly parts: Parts;
  /** S10: readiness off, agents told, accepted work finished, streams ended; within 10 s. Idempotent. */
  stop(): Promise<Farewell>;
}

const LEASE_MS = 5_000;
const REFRESH_MS = 1_000;
const ANNOUNCE_MS = 5_000;
const DRAIN_MS = 1_500;
const AGENTS_LEAVE_MS = 2_500;
const REQUESTS_END_MS = 4_000;
const STORE_MS = 2_000;
/** Everything together; a part that comes after it gets `LEAST_MS`. */
const CLOSE_MS = 8_500;
const LEAST_MS = 100;

/** Starts everything; throws StartError or StoreError, with nothing left running. */
export async function startReplica(options: ReplicaOptions): Promise<Replica> {
  const { config, logger, store } = options;
  // Two streams a peer and one an agent, with room for reconnects that overlap.
  const grpc = createGrpcServer(config.maxAgents + 1_000);
  let app: HttpApp | undefined;
  try {
    // The port must be known before the others are told of it; until the services are there it answers UNIMPLEMENTED.
    const grpcPort = await listenGrpc(grpc, config.grpc);
    const grpcAddress = formatAddress({ host: config.grpc.host, port: grpcPort });
    const advertised = config.advertiseGrpc ?? grpcAddress;
    const parts = buildParts({ ...options, grpc: advertised });
    addAgentService(grpc, parts.distribution);
    addPeerService(grpc, { fleet: parts.fleet, own: (kind, namespace) => parts.live.own(kind, namespace) });
    app = await createHttpApp({ ...parts });
    await app.listen(config.http).catch((error: Error) => {
      throw listenError(error, config.http, '--http');
    });
    return new RunningReplica({ parts, grpc, app, advertised, grpcAddress });
  } catch (error) {
    grpc.forceShutdown();
    await app?.app.close().catch(() => undefined);
    await store.close().catch((failure: unknown) => logger.warn({ err: failure }, 'the store did not close'));
    throw error;
  }
}

interface Running {
  readonly parts: Parts;
  readonly grpc: Server;
  readonly app: HttpApp;
  readonly advertised: string;
  readonly grpcAddress: string;
}

class RunningReplica implements Replica {
  readonly http: string;
  readonly grpc: string;
  readonly parts: Parts;
  private readonly member: LeasedKey;
  private readonly timers: NodeJS.Timeout[] = [];
  private farewell: Promise<Farewell> | undefined;
  /** Monotonic. */
  private closedByMs = 0;

  constructor(private readonly running: Running) {
    const { parts, app, advertised, grpcAddress } = running;
    const { config, logger, store } = parts;
    this.parts = parts;
    this.grpc = grpcAddress;
    const address = app.app.getHttpServer().address();
    const port = address !== null && typeof address === 'object' ? address.port : config.http.port;
    this.http = formatAddress({ host: config.http.host, port });
    this.member = new LeasedKey({
      store,
      key: `${MEMBER_PREFIX}${config.id}`,
      value: () => memberText({ id: config.id, grpc: advertised }),
      exclusive: false,
      ttlMs: LEASE_MS,
      logger,
    });
    this.start();
  }

  stop(): Promise<Farewell> {
    return (this.farewell ??= this.close());
  }

  private start(): void {
    const { mirrors, era, fleet, health, peers, members } = this.parts;
    mirrors.policies.listen({
      changed: () => undefined,
      // Higher than anything this process has seen: agents must follow the store back.
      wentBack: (from, to) =>
        this.raiseEra(era.current + 1, `the store went back from revision ${from} to ${to}`),
    });
    const follow = (): void => {
      peers.keepOnly([...members.others(), members.decider()?.grpc ?? '']);
      fleet.follow();
    };
    mirrors.claims.listen({ changed: follow });
    mirrors.members.listen({ changed: follow });
    for (const mirror of Object.values(mirrors)) mirror.start();
    health.start();
    this.member.start();
    this.beginWhenLoaded();
    this.timers.push(setInterval(() => this.refresh(), REFRESH_MS));
    this.timers.push(setInterval(() => this.parts.distribution.announceServiceSizes(), ANNOUNCE_MS));
  }

  /** The era must be there, and all rules known, before this replica decides or sends anything. */
  private beginWhenLoaded(): void {
    const { mirrors, era, fleet, logger } = this.parts;
    const begin = async (): Promise<void> => {
      await mirrors.policies.reach(1, 2 ** 31 - 1);
      await era.raise(1, 'the beginning');
      fleet.start();
    };
    begin().catch((error: unknown) => {
      if (this.farewell !== undefined) return;
      logger.warn({ err: error }, 'the store does not answer yet; trying again');
      setTimeout(() => this.beginWhenLoaded(), REFRESH_MS).unref();
    });
  }

  /** Until it is done: before that, agents keep what the store no longer has. */
  private raiseEra(atLeast: number, reason: string): void {
    const { era, logger } = this.parts;
    era.raise(atLeast, reason).catch((error: unknown) => {
      if (this.farewell !== undefined) return;
      logger.error({ err: error }, 'the era could not be raised; trying again');
      setTimeout(() => this.raiseEra(atLeast, reason), REFRESH_MS).unref();
    });
  }

  private refresh(): void {
    const { tallies, policies, mirrors, logger } = this.parts;
    if (!mirrors.policies.loaded) return;
    tallies
      .refresh()
      .then(() => policies.objects.refresh())
      .catch((error: unknown) =>
        logger.error({ err: error }, 'the status of policies could not be computed'),
      );
  }

  private async close(): Promise<Farewell> {
    const { health, distribution, registry, api, fleet, relay, logger } = this.parts;
    const { traffic } = this.running.app;
    this.closedByMs = performance.now() + CLOSE_MS;
    logger.info({ agents: registry.size, watches: api.openWatches }, 'leaving: no new work is taken');
    health.leave();
    for (const timer of this.timers) clearInterval(timer);
    distribution.drain(DRAIN_MS);
    api.endWatches();
    // Another replica decides at once; agents go on hearing from it over their new connections.
    await this.tell('the claim', this.inTime(fleet.stop()));
    const requestsDone = waitUntil(() => traffic.open === 0, REQUESTS_END_MS);
    await waitUntil(() => registry.size === 0, AGENTS_LEAVE_MS);
    distribution.closeAll('this replica is leaving; connect to another one');
    relay.stop();
    await requestsDone;
    const unfinished = traffic.open;
    await this.closeParts();
    const { accepted, completed, refused } = traffic;
    return { clean: unfinished === 0, accepted, completed, refused, unfinished };
  }

  private async closeParts(): Promise<void> {
    const { health, mirrors, peers, breakers, agents, store } = this.parts;
    const { grpc, app } = this.running;
    breakers.stop();
    agents.stop();
    await this.tell('the member record', this.inTime(this.member.stop()));
    const watches = Promise.all(Object.values(mirrors).map((one) => one.stop()));
    await this.tell('the store watches', this.inTime(watches));
    await this.tell('the health checks', this.inTime(health.stop()));
    peers.close();
    const shut = new Promise<void>((resolve) => grpc.tryShutdown(() => resolve()));
    await within(500, shut);
    grpc.forceShutdown();
    app.app.getHttpServer().closeAllConnections();
    await this.tell('the HTTP server', this.inTime(app.app.close()));
    await this.tell('the store', this.inTime(store.close()));
  }

  /** At most 2 s for a part, and less when the parts before took theirs: a store that is away must not add up. */
  private inTime(work: Promise<unknown>): Promise<boolean> {
    const leftMs = this.closedByMs - performance.now();
    return within(Math.max(LEAST_MS, Math.min(STORE_MS, leftMs)), work);
  }

  private async tell(what: string, work: Promise<boolean>): Promise<void> {
    const { logger } = this.parts;
    try {
      if (!(await work)) logger.warn({}, `${what} did not end in time`);
    } catch (error) {
      logger.warn({ err: error }, `${what} did not end well`);
    }
  }
}
