import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { playAct, type Stage } from './act.js';
import { CallerFleet } from './caller-fleet.js';
import { machineMs } from './clock.js';
import { Closing } from './closing.js';
import type { Act } from './evidence.js';
import { runBulwark, startControlPlane, startDependency } from './programs.js';
import { Report } from './report.js';

const NAMESPACE = 'tour';
const PROCESSES = 20;
const CROWD = 200;

const CONSECUTIVE: Act = {
  policy: 'recommendations',
  service: 'recommendations',
  healthyMs: 3_000,
  outageMs: 5_000,
  wastedMax: 50,
  separateWaste: PROCESSES * 10,
  protectedWithinMs: 150,
  steps: [0.1, 0.25, 0.5],
};

const RATE: Act = {
  policy: 'pricing',
  service: 'pricing',
  healthyMs: 11_000,
  outageMs: 3_000,
  protectedWithinMs: 1_000,
  steps: [0.1, 0.25, 0.5],
};

const CROWDED: Act = {
  policy: 'reviews',
  service: 'reviews',
  healthyMs: 4_000,
  outageMs: 1_000,
  steps: [0.1, 0.25, 0.5],
};

/** Plays the whole story once. Answers the exit code: 0 when every step held. */
export async function playTour(write: (line: string) => void, interrupted: AbortSignal): Promise<number> {
  const report = new Report(write, machineMs);
  const closing = new Closing();
  interrupted.addEventListener('abort', () => void closing.run(), { once: true });
  try {
    const servers = await startServers(report, closing);
    await actsOfTwenty(report, closing, servers);
    await actOfTheCrowd(report, closing, servers);
  } catch (error) {
    if (interrupted.aborted) return 130;
    report.say(`the tour stopped: ${(error as Error).message}`);
    return 1;
  } finally {
    await closing.run();
  }
  const missed = report.missed();
  write('');
  write(
    missed.length === 0 ? `All ${report.count()} measurements held.` : `Did not hold: ${missed.join('; ')}`,
  );
  return missed.length === 0 ? 0 : 1;
}

interface Servers {
  readonly http: string;
  readonly grpc: string;
  readonly dependencyUrl: string;
  readonly scratch: string;
}

async function startServers(report: Report, closing: Closing): Promise<Servers> {
  const scratch = await mkdtemp(join(tmpdir(), 'bulwark-tour-'));
  closing.add(() => rm(scratch, { recursive: true, force: true }));
  const dependency = await startDependency(0, ['recommendations', 'pricing', 'reviews']);
  closing.add(() => dependency.stop());
  const store = `file:${join(scratch, 'store')}`;
  const server = await startControlPlane([
    '--store',
    store,
    '--http',
    '127.0.0.1:0',
    '--grpc',
    '127.0.0.1:0',
  ]);
  closing.add(() => server.stop());
  report.say(`control plane on http://${server.addresses.http}, agents on ${server.addresses.grpc}`);
  return { ...server.addresses, dependencyUrl: `http://127.0.0.1:${dependency.port}`, scratch };
}

async function actsOfTwenty(report: Report, closing: Closing, servers: Servers): Promise<void> {
  report.heading(`${PROCESSES} agent processes, 20 calls a second each, a dependency that dies at once`);
  const fleet = new CallerFleet();
  closing.add(() => fleet.stop());
  const instances = Array.from({ length: PROCESSES }, (_, index) => `web-${index + 1}`);
  for (const instance of instances)
    startCallers(fleet, servers, {
      instances: [instance],
      callsPerSecond: 20,
      services: ['recommendations', 'pricing'],
    });
  await apply(report, servers, 'tour-consecutive.yaml');
  await apply(report, servers, 'tour-rate.yaml');
  await fleet.untilReady();
  const stage = stageOf(report, servers, fleet, instances);

  report.heading('Act 1: ten consecutive failures, counted over the fleet');
  fleet.choose([CONSECUTIVE.service]);
  await playAct(CONSECUTIVE, stage);
  report.heading('Act 2: failure rate 50 % of at least 20 calls in 10 s, a window full of successes');
  fleet.choose([RATE.service]);
  await playAct(RATE, stage);
  await fleet.stop();
}

async function actOfTheCrowd(report: Report, closing: Closing, servers: Servers): Promise<void> {
  report.heading(`Act 3: ${CROWD} agents in one process, one call in two seconds each`);
  const fleet = new CallerFleet();
  closing.add(() => fleet.stop());
  const instances = Array.from({ length: CROWD }, (_, index) => `crowd-${index + 1}`);
  startCallers(fleet, servers, { instances, callsPerSecond: 0.5, services: ['reviews'] });
  await apply(report, servers, 'tour-crowd.yaml');
  await fleet.untilReady();
  await playAct(CROWDED, stageOf(report, servers, fleet, instances));
}

function startCallers(
  fleet: CallerFleet,
  servers: Servers,
  {
    instances,
    callsPerSecond,
    services,
  }: { instances: string[]; callsPerSecond: number; services: string[] },
): void {
  fleet.start({
    controlPlane: servers.grpc,
    namespace: NAMESPACE,
    service: 'storefront',
    instances,
    targets: services.map((service) => ({ service, url: `${servers.dependencyUrl}/svc/${service}/` })),
    callsPerSecond,
    stateDir: join(servers.scratch, 'agents'),
  });
}

async function apply(report: Report, servers: Servers, file: string): Promise<void> {
  const path = fileURLToPath(new URL(`../policies/${file}`, import.meta.url));
  const said = await runBulwark(['apply', '-f', path, '--server', `http://${servers.http}`]);
  report.say(`bulwark apply -f ${file}: ${said.trim()}`);
}

function stageOf(report: Report, servers: Servers, fleet: CallerFleet, agents: readonly string[]): Stage {
  return {
    report,
    fleet,
    agents,
    namespace: NAMESPACE,
    http: servers.http,
    dependencyUrl: servers.dependencyUrl,
  };
}
