import type { Arrival } from './dependency.js';
import type { Act, Evidence } from './evidence.js';
import type { Report } from './report.js';

const SHARE_TOLERANCE = 0.02;
/** From an agent's decision to the dependency's log, on one busy machine. */
const UNDER_WAY_MS = 100;

/** Compares what the dependency saw with what the act asks for. */
export function judgeAct(act: Act, evidence: Evidence, report: Report): void {
  judgeProtection(act, evidence, report);
  judgeProbes(evidence, report);
  judgeRecovery(act, evidence, report);
}

function judgeProtection(act: Act, evidence: Evidence, report: Report): void {
  const failures = evidence.arrivals.filter((one) => one.status >= 500);
  const firstFailureMs = failures[0]?.atMs ?? evidence.brokenAtMs;
  const wasted = failures.filter((one) => isWasted(one, evidence)).length;
  const separate = act.separateWaste === undefined ? '' : `; separate breakers waste ${act.separateWaste}`;
  report.find({
    name: 'calls wasted on the dead dependency',
    value: String(wasted),
    reach: act.wastedMax === undefined ? 'reported' : `at most ${act.wastedMax}${separate}`,
    ok: act.wastedMax === undefined || wasted <= act.wastedMax,
  });
  const tookMs = lastOpenMs(evidence) - firstFailureMs;
  report.find({
    name: 'first failure → last agent open',
    value: `${tookMs.toFixed(0)} ms`,
    reach: act.protectedWithinMs === undefined ? 'reported' : `at most ${act.protectedWithinMs} ms`,
    ok: act.protectedWithinMs === undefined || tookMs <= act.protectedWithinMs,
  });
}

function judgeProbes(evidence: Evidence, report: Report): void {
  const firstStep = Math.min(...stepsOf(evidence).map(([epoch]) => epoch));
  const probes = evidence.arrivals.filter((one) => !isWasted(one, evidence) && one.epoch < firstStep).length;
  const cooldowns = evidence.breaker.status.transitions.filter(
    (one) => one.from === 'Open' && one.to === 'HalfOpen' && one.epoch > tripEpoch(evidence),
  ).length;
  report.find({
    name: 'probes that reached the dependency',
    value: String(probes),
    reach: `one for each of ${cooldowns} cooldowns`,
    ok: cooldowns > 0 && probes === cooldowns,
  });
}

/**
 * A call of the time before the fleet was open. One that an agent began in its last moment before the verdict arrives a
 * little later: it carries an epoch from before the trip.
 */
function isWasted(arrival: Arrival, evidence: Evidence): boolean {
  const lateMs = arrival.atMs - lastOpenMs(evidence);
  return lateMs <= 0 || (lateMs <= UNDER_WAY_MS && arrival.epoch < tripEpoch(evidence));
}

function lastOpenMs(evidence: Evidence): number {
  return Math.max(...evidence.openedAtMs.values());
}

function tripEpoch(evidence: Evidence): number {
  const trips = evidence.breaker.status.transitions.filter(
    (one) => one.from === 'Closed' && one.to === 'Open',
  );
  return trips.at(-1)?.epoch ?? 0;
}

function judgeRecovery(act: Act, evidence: Evidence, report: Report): void {
  const steps = stepsOf(evidence);
  for (const [index, wanted] of act.steps.entries()) {
    const step = steps[index];
    const epoch = step?.[0] ?? -1;
    const offered = step?.[1].offered ?? 0;
    const arrived = evidence.arrivals.filter((one) => one.epoch === epoch).length;
    const share = offered === 0 ? Number.NaN : arrived / offered;
    report.find({
      name: `recovery step ${index + 1}: ${arrived} of ${offered} calls admitted`,
      value: offered === 0 ? 'no calls' : `${(share * 100).toFixed(2)}%`,
      reach: `${(wanted * 100).toFixed(0)}% ± ${SHARE_TOLERANCE * 100} points`,
      ok: Math.abs(share - wanted) <= SHARE_TOLERANCE,
    });
  }
}

/** Recovery steps of this outage in order: those epochs under which agents were in state "recovering". */
function stepsOf(evidence: Evidence): [number, { share: number; offered: number; admitted: number }][] {
  return [...evidence.offered]
    .filter(([epoch, count]) => count.state === 'recovering' && epoch > tripEpoch(evidence))
    .sort(([a], [b]) => a - b);
}
