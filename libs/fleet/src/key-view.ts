import { RECENT_MS } from './agent-series.js';
import { isDecided, scopeNote } from './scope.js';
import type { AgentKeyView, KeyView } from './contract.js';
import type { KeyBreaker } from './key-breaker.js';
import { judgeTrip } from './trip-rules.js';
import { stepNote } from './step-rules.js';

/** Enough for a page; a key of ten thousand agents must not make an answer of megabytes. */
const AGENTS_SHOWN = 1_000;
const LOCALISED_SHOWN = 100;
const ZONE = 'bulwark.dev/zone';

/** What people see of a key. Works out everything from the counts; changes nothing. */
export function viewOf(breaker: KeyBreaker, nowMs: number): KeyView {
  const agents: AgentKeyView[] = [];
  const localised: string[] = [];
  const fleetClosed = breaker.state.name === 'closed';
  let [successes, failures, rejected] = [0, 0, 0];
  for (const one of breaker.series.all) {
    if (!one.agent.up) continue;
    const recent = one.recentSum(nowMs);
    successes += recent.successes;
    failures += recent.failures;
    rejected += recent.third;
    const { id, labels } = one.agent.identity;
    const { localState, inForce } = one;
    const alone = localState === 'open' || localState === 'half-open';
    if (fleetClosed && alone && localised.length < LOCALISED_SHOWN) localised.push(id);
    if (agents.length >= AGENTS_SHOWN) continue;
    agents.push({
      agent: id,
      zone: labels[ZONE],
      localState,
      inForce,
      successes: Math.round(recent.successes),
      failures: Math.round(recent.failures),
      rejected: Math.round(recent.third),
    });
  }
  const calls = successes + failures;
  return {
    key: breaker.key,
    verdict: breaker.record,
    agents,
    callsPerSecond: (1000 * calls) / RECENT_MS,
    failureRatio: calls < 0.5 ? undefined : failures / calls,
    rejectedPerSecond: (1000 * rejected) / RECENT_MS,
    localised,
    note: noteOf(breaker, nowMs),
  };
}

function noteOf(breaker: KeyBreaker, nowMs: number): string | undefined {
  const scene = breaker.scene(nowMs);
  if (breaker.quiet) return 'the store refused a verdict: another decider has the claim';
  if (scene === undefined) return 'no rule is known for this policy';
  if (breaker.isWriting) return 'a change is being stored';
  if (breaker.forced !== undefined) return undefined;
  if (!isDecided(scene.settings.scope)) return scopeNote(scene.settings.scope);
  const { state } = breaker;
  switch (state.name) {
    case 'closed':
      return closedNote(breaker, nowMs) ?? scopeNote(scene.settings.scope);
    case 'open':
      return undefined;
    case 'half-open':
      if (state.permit !== undefined) return undefined;
      return state.notBeforeMs > nowMs ? 'waiting before the next probe permit' : 'waiting for demand';
    case 'recovering':
      return nowMs < state.endsMs ? undefined : stepNote(scene, state.fromMs);
  }
}

function closedNote(breaker: KeyBreaker, nowMs: number): string | undefined {
  const { settings, series } = breaker;
  if (settings === undefined) return undefined;
  const { lastSuccessMs, judgeFromMs, observedFromMs } = series;
  const word = judgeTrip(series.all, {
    settings,
    nowMs,
    lastSuccessMs,
    judgeFromMs,
    observedFromMs,
    tellsLocalised: true,
  });
  if (word.kind === 'localised') return `localised: ${word.message}`;
  if (word.kind === 'trips') return breaker.isAsking ? 'asking the agents before a trip' : undefined;
  return word.note;
}
