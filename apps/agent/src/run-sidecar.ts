import { ArgumentError, connect, connectProblems, RefusedError, type Bulwark } from '@bulwark/agent';
import { createLogger, type Logger } from '@bulwark/telemetry';
import { randomBytes } from 'node:crypto';
import { sumOf, type DrainCounts } from './accepted-work.js';
import { adminServer } from './admin-server.js';
import { BindError, bindServer } from './bind-server.js';
import { tuneHeap } from './heap-settings.js';
import { InboundServer } from './inbound-server.js';
import { isLoopback } from './loopback.js';
import { ProxyServer } from './proxy-server.js';
import { SidecarMetrics } from './sidecar-metrics.js';
import { parseSidecarOptions, USAGE, type InboundOptions, type SidecarOptions } from './sidecar-options.js';
import { StrippedMarks } from './stripped-marks.js';
import { TraceJoin } from './trace-join.js';

/** What a sidecar has of its process; tests give their own. */
export interface SidecarIo {
  readonly logger: Logger;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** Calls `listener` for each SIGTERM or SIGINT, until the answer is called. */
  readonly onSignal: (listener: (signal: string) => void) => () => void;
  /** Hears where it listens, once it does. */
  readonly onListening?: (ports: SidecarPorts) => void;
}

export interface SidecarPorts {
  readonly listen: number;
  readonly admin: number;
  /** Undefined = there is no inbound side. */
  readonly inbound: number | undefined;
}

const EXIT = { ok: 0, failed: 1, usage: 64 } as const;

/**
 * Runs a sidecar until a signal ends it. Answers the exit code: 0 after a clean drain, 1 when work was left unfinished
 * or it could not start, 64 for wrong usage.
 */
export async function runSidecar(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  io: SidecarIo = processIo(),
): Promise<number> {
  const parsed = parseSidecarOptions(argv, env);
  if (parsed.kind === 'help') {
    io.out(USAGE);
    return EXIT.ok;
  }
  const problems = parsed.kind === 'wrong' ? parsed.problems : connectProblems(agentOptions(parsed.options));
  if (parsed.kind === 'wrong' || problems.length > 0) return wrongUsage(io, problems);
  tuneHeap();
  const sidecar = new Sidecar(parsed.options, io);
  try {
    await sidecar.start();
  } catch (error) {
    await sidecar.abandon();
    if (error instanceof ArgumentError) return wrongUsage(io, error.problems);
    if (!(error instanceof BindError || error instanceof RefusedError)) throw error;
    io.err(`bulwark agent: ${error.message}\n`);
    return EXIT.failed;
  }
  return sidecar.untilStopped();
}

function wrongUsage(io: SidecarIo, problems: readonly string[]): number {
  io.err(problems.map((problem) => `bulwark agent: ${problem}\n`).join(''));
  io.err('Try "bulwark agent --help".\n');
  return EXIT.usage;
}

function agentOptions(options: SidecarOptions) {
  const { namespace, service, instance, labels, controlPlane, stateDir, bootstrap, bypassFile } = options;
  return {
    namespace,
    service,
    labels,
    controlPlane,
    ...(instance !== undefined && { instance }),
    ...(stateDir !== undefined && { stateDir }),
    ...(bootstrap !== undefined && { bootstrap }),
    ...(bypassFile !== undefined && { bypassFile }),
  };
}

class Sidecar {
  readonly #options: SidecarOptions;
  readonly #io: SidecarIo;
  readonly #proxy: ProxyServer;
  readonly #inbound: InboundServer | undefined;
  readonly #metrics: SidecarMetrics;
  readonly #stripped: StrippedMarks;
  readonly #admin;
  #bulwark: Bulwark | undefined;
  #draining = false;
  #listenPort = 0;

  constructor(options: SidecarOptions, io: SidecarIo) {
    this.#options = options;
    this.#io = io;
    this.#stripped = new StrippedMarks(io.logger);
    const join = options.inbound && new TraceJoin();
    this.#proxy = this.#outboundSide(join);
    this.#inbound = options.inbound && join && this.#inboundSide(options.inbound, join);
    const state = () => this.#bulwark?.state();
    const inbound = this.#inbound && join && { work: this.#inbound.work, join };
    const stripped = this.#stripped;
    this.#metrics = new SidecarMetrics({ state, outbound: this.#proxy.work, inbound, stripped });
    const sides = { outbound: this.#proxy.work, inbound };
    this.#admin = adminServer({
      host: options.admin.host,
      state,
      draining: () => this.#draining,
      metrics: this.#metrics,
      sides,
    });
  }

  /** Ports first: that one is taken should not be found out after a wait for the control plane. */
  async start(): Promise<void> {
    const { listen, admin, inbound, controlPlane } = this.#options;
    const adminPort = await bindServer(this.#admin, admin, '--admin');
    this.#listenPort = await bindServer(this.#proxy.door.server, listen, '--listen');
    const inboundPort =
      this.#inbound && inbound && (await bindServer(this.#inbound.door.server, inbound.listen, '--inbound'));
    this.#bulwark = await connect({
      ...agentOptions(this.#options),
      logger: this.#io.logger,
      failOnRefusal: true,
      onEvent: (event) => this.#metrics.heard(event),
    });
    this.#proxy.begin(this.#bulwark);
    // After the outbound side: the service's own calls must find their way from its first call on.
    this.#inbound?.begin();
    const { ready, reason } = this.#bulwark.readiness();
    this.#io.logger.info(
      {
        agent: this.#bulwark.id,
        listen: `${listen.host}:${this.#listenPort}`,
        admin: `${admin.host}:${adminPort}`,
        ...(inbound && { inbound: `${inbound.listen.host}:${inboundPort}`, app: inbound.app.href }),
        controlPlane,
        ready,
        ...(reason !== '' && { reason }),
      },
      'listening',
    );
    this.#io.onListening?.({ listen: this.#listenPort, admin: adminPort, inbound: inboundPort });
  }

  /** Ends what a failed start has opened. */
  async abandon(): Promise<void> {
    await this.#bulwark?.close();
    await Promise.all([this.#proxy.close(), this.#inbound?.close()]);
    this.#admin.close();
  }

  /** Waits for a signal, drains, and answers the exit code. A second signal ends it at once. */
  async untilStopped(): Promise<number> {
    let stop: (() => void) | undefined;
    const code = await new Promise<number>((resolve) => {
      stop = this.#io.onSignal((signal) => {
        if (this.#draining) {
          this.#io.logger.warn({ signal, ...this.#counts() }, 'second signal: ending at once');
          resolve(EXIT.failed);
          return;
        }
        void this.#drain(signal).then(resolve);
      });
    });
    stop?.();
    return code;
  }

  /**
   * No new calls of the service are taken. Those accepted need the outbound side to their end, so that one refuses only
   * when the last of them is over; one time limit is for both.
   */
  async #drain(signal: string): Promise<number> {
    this.#draining = true;
    const { drainMs } = this.#options;
    const untilMs = performance.now() + drainMs;
    const [outbound, inbound] = [this.#proxy.work, this.#inbound?.work];
    const inFlight = outbound.inFlight + (inbound?.inFlight ?? 0);
    this.#io.logger.info({ signal, inFlight, drainMs }, 'draining: no new calls are taken');
    this.#inbound?.stop();
    await inbound?.settled(drainMs);
    this.#proxy.stop();
    await outbound.settled(Math.max(0, untilMs - performance.now()));
    const counts = this.#counts();
    await Promise.all([this.#proxy.close(), this.#inbound?.close()]);
    await this.#bulwark?.close();
    this.#admin.close();
    this.#admin.closeAllConnections();
    const clean = counts.unfinished === 0;
    if (clean) this.#io.logger.info({ ...counts }, 'stopped: everything accepted was answered');
    else this.#io.logger.error({ ...counts }, 'stopped: the deadline cut off accepted calls');
    return clean ? EXIT.ok : EXIT.failed;
  }

  /** Of both sides together, and of each where there are two. */
  #counts(): DrainCounts & { readonly outbound?: DrainCounts; readonly inbound?: DrainCounts } {
    const outbound = this.#proxy.work.counts();
    if (this.#inbound === undefined) return outbound;
    const inbound = this.#inbound.work.counts();
    return { ...sumOf([outbound, inbound]), outbound, inbound };
  }

  #outboundSide(join: TraceJoin | undefined): ProxyServer {
    const { upstreams, listen, trustedPeers } = this.#options;
    return new ProxyServer({
      upstreams,
      isSelf: (host, port) => port === this.#listenPort && (host === listen.host || isLoopback(host)),
      pseudonym: pseudonym(),
      join,
      trustedPeers,
      onEnd: (end) => this.#metrics.called(end),
      onStripped: (address) => this.#stripped.note('outbound', address),
    });
  }

  /** Its name in Via is another than the outbound side's: a service may well call itself. */
  #inboundSide({ app }: InboundOptions, join: TraceJoin): InboundServer {
    const { service, trustedPeers } = this.#options;
    return new InboundServer({
      app,
      service,
      pseudonym: pseudonym(),
      join,
      trustedPeers,
      onEnd: (end) => this.#metrics.answered(end),
      onStripped: (address) => this.#stripped.note('inbound', address),
    });
  }
}

function pseudonym(): string {
  return `bulwark-${randomBytes(4).toString('hex')}`;
}

function processIo(): SidecarIo {
  return {
    logger: createLogger({ name: 'agent' }),
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    onSignal: (listener) => {
      const signals = ['SIGTERM', 'SIGINT'] as const;
      for (const signal of signals) process.on(signal, listener);
      return () => signals.forEach((signal) => process.removeListener(signal, listener));
    },
  };
}
