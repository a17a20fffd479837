import type {
  AgentReport,
  BreakerKey,
  DeciderEffect,
  DeciderOptions,
  FleetDecider,
  FleetState,
  Forced,
  KeyView,
  Now,
  StoredVerdict,
} from '@bulwark/fleet';
import { keyId } from '../fleet/breaker-name.js';

const TTL_MS = 30_000;

/**
 * A decider with the simplest rule there is: three failures in one report open the key, and a report without a failure
 * closes it. It keeps the contract (write, then push) so that what hosts it can be tried without the real rules.
 */
export class ScriptedDecider implements FleetDecider {
  readonly agents = new Map<string, string>();
  readonly rules = new Set<string>();
  private readonly verdicts = new Map<string, StoredVerdict>();
  private readonly writing = new Map<string, StoredVerdict>();
  private announced = false;

  constructor(private readonly options: DeciderOptions) {
    for (const verdict of options.resume) this.verdicts.set(keyId(verdict.key), verdict);
  }

  setRule({ namespace, policy }: { namespace: string; policy: string }, rule: unknown): DeciderEffect[] {
    const id = `${namespace}/${policy}`;
    if (rule !== undefined) {
      this.rules.add(id);
      return [];
    }
    this.rules.delete(id);
    const gone = [...this.verdicts.values()].filter(({ key }) => `${key.namespace}/${key.policy}` === id);
    for (const { key } of gone) this.verdicts.delete(keyId(key));
    return gone.map(({ key }) => ({ kind: 'remove', key }));
  }

  agentUp(agent: { id: string; incarnation: string }): DeciderEffect[] {
    this.agents.set(agent.id, agent.incarnation);
    return [];
  }

  agentDown(agent: { id: string; incarnation: string }): DeciderEffect[] {
    if (this.agents.get(agent.id) === agent.incarnation) this.agents.delete(agent.id);
    return [];
  }

  report(agent: { id: string }, report: AgentReport, now: Now): DeciderEffect[] {
    return report.keys.flatMap(({ key, failures, runFailures }): DeciderEffect[] => {
      if (!this.rules.has(`${key.namespace}/${key.policy}`)) return [];
      const state = this.verdicts.get(keyId(key))?.state ?? 'closed';
      if (state === 'closed' && runFailures >= 3) {
        const poll: DeciderEffect = { kind: 'poll', pollId: 7, key, agents: [...this.agents.keys()] };
        return [poll, ...this.become(key, 'open', { now, message: `${failures} failures at ${agent.id}` })];
      }
      if (state === 'open' && runFailures === 0)
        return this.become(key, 'closed', { now, message: 'well again' });
      return [];
    });
  }

  written(key: BreakerKey, _version: unknown, ok: boolean): DeciderEffect[] {
    const verdict = this.writing.get(keyId(key));
    this.writing.delete(keyId(key));
    if (verdict === undefined || !ok) return [];
    this.verdicts.set(keyId(key), verdict);
    return [{ kind: 'push', verdict, ttlMs: TTL_MS }];
  }

  force(key: BreakerKey, forced: Forced | undefined, now: Now): DeciderEffect[] {
    return this.become(key, this.verdicts.get(keyId(key))?.state ?? 'closed', {
      now,
      message: 'forced',
      forced,
    });
  }

  /** The first tick says again what was resumed. */
  tick(): DeciderEffect[] {
    if (this.announced) return [];
    this.announced = true;
    return [...this.verdicts.values()].map((verdict) => ({ kind: 'push', verdict, ttlMs: TTL_MS }));
  }

  wakeAtMs(): number {
    return this.announced ? Infinity : 0;
  }

  views(): KeyView[] {
    return [...this.verdicts.values()].map((verdict) => ({
      key: verdict.key,
      verdict,
      agents: [],
      callsPerSecond: 0,
      failureRatio: undefined,
      rejectedPerSecond: 0,
      localised: [],
      note: undefined,
    }));
  }

  private become(
    key: BreakerKey,
    to: FleetState,
    { now, message, forced }: { now: Now; message: string; forced?: Forced | undefined },
  ): DeciderEffect[] {
    const former = this.verdicts.get(keyId(key));
    const { era, token } = this.options;
    const epoch = (former?.version.epoch ?? 0) + 1;
    const transition = {
      unixMs: now.unixMs,
      from: former?.state ?? 'closed',
      to,
      reason: 'scripted',
      message,
      epoch,
      share: 0,
    };
    const verdict: StoredVerdict = {
      key,
      version: { era, token, epoch },
      state: to,
      share: 0,
      step: -1,
      permit: undefined,
      forced,
      reason: 'scripted',
      message,
      cooldownMs: 5_000,
      trips: 1,
      sinceUnixMs: now.unixMs,
      writtenUnixMs: now.unixMs,
      transitions: [...(former?.transitions ?? []), transition],
    };
    this.writing.set(keyId(key), verdict);
    return [{ kind: 'write', verdict }];
  }
}
