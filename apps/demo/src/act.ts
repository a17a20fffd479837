import { breakerOfPolicy, type Breaker } from './breaker-api.js';
import type { CallerFleet } from './caller-fleet.js';
import { machineMs } from './clock.js';
import type { Arrival } from './dependency.js';
import type { Act, Evidence } from './evidence.js';
import { requestJson } from './http.js';
import { judgeAct } from './judge.js';
import type { Report } from './report.js';
import { eventually, pause } from './wait.js';

/** Where an act is played: running servers and callers. */
export interface Stage {
  readonly http: string;
  readonly dependencyUrl: string;
  readonly namespace: string;
  readonly fleet: CallerFleet;
  readonly agents: readonly string[];
  readonly report: Report;
}

const OPEN_LIMIT_MS = 15_000;
const RECOVERY_LIMIT_MS = 60_000;

export async function playAct(act: Act, stage: Stage): Promise<void> {
  const { report, fleet } = stage;
  report.say(`${stage.agents.length} agents call ${act.service}; all answers are well`);
  await pause(act.healthyMs);

  const { atMs: brokenAtMs } = await requestJson<{ atMs: number }>(
    `${stage.dependencyUrl}/break/${act.service}`,
    'POST',
  );
  report.say(`${act.service} begins to answer 500`);
  await eventually(`all agents open for ${act.service}`, OPEN_LIMIT_MS, () =>
    openings(fleet, act.service, brokenAtMs).size >= stage.agents.length ? true : undefined,
  );
  report.say(`the fleet is open: ${(await breaker(act, stage)).status.message ?? ''}`);

  await pause(Math.max(0, brokenAtMs + act.outageMs - machineMs()));
  await requestJson(`${stage.dependencyUrl}/heal/${act.service}`, 'POST');
  report.say(`${act.service} is well again`);
  const closed = await recovered(act, stage);
  judgeAct(act, await gather(act, stage, { brokenAtMs, closed }), report);
}

function openings(fleet: CallerFleet, service: string, sinceMs: number): Map<string, number> {
  const first = new Map<string, number>();
  for (const change of fleet.changesOf(service, sinceMs)) {
    if (change.state === 'open' && !first.has(change.agent)) first.set(change.agent, change.atMs);
  }
  return first;
}

async function breaker(act: Act, stage: Stage): Promise<Breaker> {
  const found = await breakerOfPolicy(stage.http, stage.namespace, act.policy);
  if (found === undefined) throw new Error(`the API shows no breaker of policy ${act.policy}`);
  return found;
}

async function recovered(act: Act, stage: Stage): Promise<Breaker> {
  let said = '';
  return eventually(`the breaker of ${act.policy} closes`, RECOVERY_LIMIT_MS, async () => {
    const now = await breaker(act, stage);
    const line = `${now.status.state}${now.status.share === undefined ? '' : ` ${now.status.share}`}`;
    if (line !== said) stage.report.say(`breaker ${line}`);
    said = line;
    return now.status.state === 'Closed' ? now : undefined;
  });
}

async function gather(
  act: Act,
  stage: Stage,
  { brokenAtMs, closed }: { brokenAtMs: number; closed: Breaker },
): Promise<Evidence> {
  const log = `${stage.dependencyUrl}/log/${act.service}?since=${brokenAtMs}`;
  const { arrivals } = await requestJson<{ arrivals: Arrival[] }>(log);
  const offered = new Map<number, { share: number; state: string; offered: number; admitted: number }>();
  for (const agent of await stage.fleet.stats()) {
    if (agent.service !== act.service) continue;
    for (const count of agent.epochs) {
      const sum = offered.get(count.epoch) ?? {
        share: count.share,
        state: count.state,
        offered: 0,
        admitted: 0,
      };
      sum.offered += count.offered;
      sum.admitted += count.admitted;
      offered.set(count.epoch, sum);
    }
  }
  return {
    brokenAtMs,
    arrivals,
    openedAtMs: openings(stage.fleet, act.service, brokenAtMs),
    breaker: closed,
    offered,
  };
}
