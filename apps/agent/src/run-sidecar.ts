import { ArgumentError, connect, connectProblems, RefusedError, type Bulwark } from '@bulwark/agent';
import { createLogger, type Logger } from '@bulwark/telemetry';
import { randomBytes } from 'node:crypto';
import { adminServer } from './admin-server.js';
import { BindError, bindServer } from './bind-server.js';
import { isLoopback } from './loopback.js';
import { ProxyServer, type DrainCounts } from './proxy-server.js';
import { SidecarMetrics } from './sidecar-metrics.js';
import { parseSidecarOptions, USAGE, type SidecarOptions } from './sidecar-options.js';

/** What a sidecar has of its process; tests give their own. */
export interface SidecarIo {
  readonly logger: Logger;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** Calls `listener` for each SIGTERM or SIGINT, until the answer is called. */
  readonly onSignal: (listener: (signal: string) => void) => () => void;
  /** Hears where it listens, once it does. */
  readonly onListening?: (ports: { readonly listen: number; readonly admin: number }) => void;
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
  const { namespace, service, instance, labels, controlPlane, stateDir, bootstrap } = options;
  return {
    namespace,
    service,
    labels,
    controlPlane,
    ...(instance !== undefined && { instance }),
    ...(stateDir !== undefined && { stateDir }),
    ...(bootstrap !== undefined && { bootstrap }),
  };
}

class Sidecar {
  readonly #options: SidecarOptions;
  readonly #io: SidecarIo;
  readonly #proxy: ProxyServer;
  readonly #metrics: SidecarMetrics;
  readonly #admin;
  #bulwark: Bulwark | undefined;
  #draining = false;
  #listenPort = 0;

  constructor(options: SidecarOptions, io: SidecarIo) {
    this.#options = options;
    this.#io = io;
    const state = () => this.#bulwark?.state();
    this.#metrics = new SidecarMetrics({ state, inFlight: () => this.#proxy.inFlight });
    this.#admin = adminServer({ state, draining: () => this.#draining, metrics: this.#metrics });
    this.#proxy = new ProxyServer({
      upstreams: options.upstreams,
      isSelf: (host, port) => port === this.#listenPort && (host === options.listen.host || isLoopback(host)),
      pseudonym: `bulwark-${randomBytes(4).toString('hex')}`,
      onEnd: (end) => this.#metrics.called(end),
    });
  }

  /** Ports first: that one is taken should not be found out after a wait for the control plane. */
  async start(): Promise<void> {
    const { listen, admin, controlPlane } = this.#options;
    const adminPort = await bindServer(this.#admin, admin, '--admin');
    this.#listenPort = await bindServer(this.#proxy.server, listen, '--listen');
    this.#bulwark = await connect({
      ...agentOptions(this.#options),
      logger: this.#io.logger,
      failOnRefusal: true,
      onEvent: (event) => this.#metrics.heard(event),
    });
    this.#proxy.begin(this.#bulwark);
    const { ready, reason } = this.#bulwark.readiness();
    this.#io.logger.info(
      {
        agent: this.#bulwark.id,
        listen: `${listen.host}:${this.#listenPort}`,
        admin: `${admin.host}:${adminPort}`,
        controlPlane,
        ready,
        ...(reason !== '' && { reason }),
      },
      'listening',
    );
    this.#io.onListening?.({ listen: this.#listenPort, admin: adminPort });
  }

  /** Ends what a failed start has opened. */
  async abandon(): Promise<void> {
    await this.#bulwark?.close();
    this.#proxy.server.close();
    this.#proxy.server.closeAllConnections();
    this.#admin.close();
  }

  /** Waits for a signal, drains, and answers the exit code. A second signal ends it at once. */
  async untilStopped(): Promise<number> {
    let stop: (() => void) | undefined;
    const code = await new Promise<number>((resolve) => {
      stop = this.#io.onSignal((signal) => {
        if (this.#draining) {
          this.#io.logger.warn({ signal, ...this.#proxy.counts() }, 'second signal: ending at once');
          resolve(EXIT.failed);
          return;
        }
        void this.#drain(signal).then(resolve);
      });
    });
    stop?.();
    return code;
  }

  async #drain(signal: string): Promise<number> {
    this.#draining = true;
    const { drainMs } = this.#options;
    this.#io.logger.info(
      { signal, inFlight: this.#proxy.inFlight, drainMs },
      'draining: no new calls are taken',
    );
    const counts: DrainCounts = await this.#proxy.drain(drainMs);
    await this.#bulwark?.close();
    this.#admin.close();
    this.#admin.closeAllConnections();
    const clean = counts.unfinished === 0;
    if (clean) this.#io.logger.info({ ...counts }, 'stopped: everything accepted was answered');
    else this.#io.logger.error({ ...counts }, 'stopped: the deadline cut off accepted calls');
    return clean ? EXIT.ok : EXIT.failed;
  }
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
