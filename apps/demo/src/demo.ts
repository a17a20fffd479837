import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { breakersOf } from './breaker-api.js';
import { CallerFleet } from './caller-fleet.js';
import { Closing } from './closing.js';
import { runBulwark, startControlPlane, startDependency, type ServerAddresses } from './programs.js';
import type { AgentStats } from './messages.js';
import { pause } from './wait.js';

const NAMESPACE = 'shop';
const SERVICES = ['storefront', 'checkout', 'mobile-api'];
const INSTANCES = 2;
const CALLS_PER_SECOND = 10;
const LOOK_EVERY_MS = 500;
const SUMMARY_EVERY_MS = 5_000;
const SILENT = 'the control plane does not answer; the agents go on alone';

interface DemoOptions {
  readonly http: string;
  readonly grpc: string;
  readonly demoPort: number;
  readonly store: string;
}

/** Runs until interrupted. Answers the exit code. */
export async function runDemo(
  args: readonly string[],
  write: (line: string) => void,
  interrupted: AbortSignal,
): Promise<number> {
  const options = parseOptions(args, write);
  if (options === undefined) return 64;
  const closing = new Closing();
  const stop = (): void => {
    write('Stopping …');
    // Also while something is still starting: it is stopped as soon as it is there.
    void closing.run();
  };
  interrupted.addEventListener('abort', stop, { once: true });
  try {
    const { fleet, addresses } = await startAll(options, { closing, write, interrupted });
    write(advice(options, addresses));
    await narrate({ fleet, http: addresses.http, write, interrupted });
    return 0;
  } catch (error) {
    if (interrupted.aborted) return 0;
    write((error as Error).message);
    return 1;
  } finally {
    await closing.run();
  }
}

function parseOptions(args: readonly string[], write: (line: string) => void): DemoOptions | undefined {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        http: { type: 'string', default: '127.0.0.1:9443' },
        grpc: { type: 'string', default: '127.0.0.1:9444' },
        'demo-port': { type: 'string', default: '9400' },
        store: { type: 'string', default: 'file:.bulwark' },
      },
    });
    const demoPort = Number(values['demo-port']);
    if (!Number.isInteger(demoPort) || demoPort < 0 || demoPort > 65_535) {
      throw new Error(`--demo-port ${values['demo-port']} must be 0 to 65535`);
    }
    return { http: values.http, grpc: values.grpc, demoPort, store: values.store };
  } catch (error) {
    write(`${(error as Error).message}\nTry: npm start -- --help`);
    return undefined;
  }
}

interface Running {
  readonly fleet: CallerFleet;
  readonly addresses: ServerAddresses & { readonly dependency: number };
}

/** Rejects when interrupted; what was started by then is stopped by `closing`. */
async function startAll(
  options: DemoOptions,
  {
    closing,
    write,
    interrupted,
  }: { closing: Closing; write: (line: string) => void; interrupted: AbortSignal },
): Promise<Running> {
  const server = await startControlPlane([
    '--store',
    options.store,
    '--http',
    options.http,
    '--grpc',
    options.grpc,
  ]);
  closing.add(() => server.stop());
  interrupted.throwIfAborted();
  const dependency = await startDependency(options.demoPort, ['recommendations', 'payments']);
  closing.add(() => dependency.stop());
  interrupted.throwIfAborted();
  const policies = fileURLToPath(new URL('../policies/demo.yaml', import.meta.url));
  write((await runBulwark(['apply', '-f', policies, '--server', `http://${server.addresses.http}`])).trim());
  interrupted.throwIfAborted();

  const fleet = new CallerFleet();
  closing.add(() => fleet.stop());
  for (const service of SERVICES) {
    fleet.start({
      controlPlane: server.addresses.grpc,
      namespace: NAMESPACE,
      service,
      instances: Array.from({ length: INSTANCES }, (_, index) => `${service}-${index + 1}`),
      targets: ['recommendations', 'payments'].map((target) => ({
        service: target,
        url: `http://127.0.0.1:${dependency.port}/svc/${target}/`,
      })),
      callsPerSecond: CALLS_PER_SECOND,
      stateDir: `${options.store.startsWith('file:') ? options.store.slice('file:'.length) : '.bulwark'}/demo-agents`,
    });
  }
  await fleet.untilReady();
  interrupted.throwIfAborted();
  return { fleet, addresses: { ...server.addresses, dependency: dependency.port } };
}

function advice(options: DemoOptions, addresses: Running['addresses']): string {
  const server = addresses.http === '127.0.0.1:9443' ? '' : ` --server http://${addresses.http}`;
  const demo = options.demoPort === 9400 ? '' : ` --demo http://127.0.0.1:${addresses.dependency}`;
  return `
${SERVICES.length * INSTANCES} agents (${SERVICES.join(', ')}) call recommendations and payments.
In another terminal, try:

  ./bulwark get breakers -n ${NAMESPACE} -w${server}        watch the fleet's breakers
  ./bulwark demo break recommendations${demo}        break a dependency
  ./bulwark describe breakers -n ${NAMESPACE}${server}      what happened, when, and why
  ./bulwark demo heal recommendations${demo}         heal it, and watch the traffic return in steps
  ./bulwark get policies,agents -n ${NAMESPACE} -o wide${server}

Ctrl-C stops everything.
`;
}

interface Narration {
  readonly fleet: CallerFleet;
  readonly http: string;
  readonly write: (line: string) => void;
  readonly interrupted: AbortSignal;
}

/** Prints every transition of a breaker as it comes, and now and then what the callers got. */
async function narrate({ fleet, http, write, interrupted }: Narration): Promise<void> {
  const epochs = new Map<string, number>();
  let before = await fleet.stats();
  let wasSilent = false;
  for (let look = 1; !interrupted.aborted; look += 1) {
    await pause(LOOK_EVERY_MS, interrupted);
    if (interrupted.aborted) return;
    const lines = await transitionLines(http, epochs);
    const silent = lines[0] === SILENT;
    if (!silent || !wasSilent) for (const line of lines) write(`${clockText()}  ${line}`);
    wasSilent = silent;
    if ((look * LOOK_EVERY_MS) % SUMMARY_EVERY_MS === 0) {
      const now = await fleet.stats();
      write(`${clockText()}  ${summary(before, now)}`);
      before = now;
    }
  }
}

async function transitionLines(http: string, epochs: Map<string, number>): Promise<string[]> {
  const breakers = await breakersOf(http, NAMESPACE).catch(() => undefined);
  if (breakers === undefined) return [SILENT];
  const lines: string[] = [];
  for (const breaker of breakers) {
    const known = epochs.get(breaker.metadata.name);
    const fresh = breaker.status.transitions.filter((one) => known !== undefined && one.epoch > known);
    for (const one of fresh) lines.push(`${breaker.spec.policy}: ${changeText(one)}  ${one.message}`);
    epochs.set(breaker.metadata.name, breaker.status.epoch);
  }
  return lines;
}

function changeText({ from, to }: { from: string; to: string }): string {
  return from === to ? to : `${from} → ${to}`;
}

function summary(before: readonly AgentStats[], now: readonly AgentStats[]): string {
  const total = (
    stats: readonly AgentStats[],
    service: string,
    field: 'fresh' | 'degraded' | 'rejected' | 'failed',
  ) => stats.filter((one) => one.service === service).reduce((sum, one) => sum + one[field], 0);
  const services = [...new Set(now.map((one) => one.service))];
  const parts = services.map((service) => {
    const counts = (['fresh', 'degraded', 'rejected', 'failed'] as const)
      .map((field) => ({ field, count: total(now, service, field) - total(before, service, field) }))
      .filter(({ field, count }) => field === 'fresh' || count > 0)
      .map(({ field, count }) => `${count} ${field}`);
    return `${service}: ${counts.join(', ')}`;
  });
  return parts.join(' · ');
}

function clockText(): string {
  return new Date().toTimeString().slice(0, 8);
}
