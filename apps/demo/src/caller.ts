import {
  connect,
  judgeHttp,
  silentLogger,
  type Bulwark,
  type EngineEvent,
  type FallbackCause,
} from '@bulwark/agent';
import { machineMs } from './clock.js';
import { httpGet, type HttpAnswer } from './http-call.js';
import type { AgentStats, CallerSettings, EpochCount } from './messages.js';

type Target = CallerSettings['targets'][number];
type Writable<T> = { -readonly [K in keyof T]: T[K] };

interface TargetCounts extends Writable<Omit<AgentStats, 'agent' | 'epochs'>> {
  readonly epochs: Map<number, Writable<EpochCount>>;
  /** The verdict in force as this agent was last told. */
  now: { epoch: number; state: string; share: number };
}

export interface CallerOptions {
  readonly settings: CallerSettings;
  readonly instance: string;
  /** 0..1: where in the period of a call this agent begins, so that a fleet's calls are spread. */
  readonly offset: number;
  readonly onState: (change: { agent: string; service: string; state: string; atMs: number }) => void;
}

/** One agent that calls each target at a steady rate and counts what it gets. */
export class Caller {
  private readonly counts = new Map<string, TargetCounts>();
  private readonly serviceOf = new Map<string, string>();
  private bulwark: Bulwark | undefined;
  private timer: NodeJS.Timeout | undefined;
  private startedMs = 0;
  private calls = 0;
  private stopped = false;
  private chosen: readonly Target[];

  constructor(private readonly options: CallerOptions) {
    this.chosen = options.settings.targets;
    for (const { service } of options.settings.targets) {
      const zero = { service, calls: 0, fresh: 0, degraded: 0, rejected: 0, failed: 0 };
      this.counts.set(service, { ...zero, epochs: new Map(), now: { epoch: 0, state: 'closed', share: 1 } });
    }
  }

  async connect(): Promise<void> {
    const { settings, instance } = this.options;
    this.bulwark = await connect({
      namespace: settings.namespace,
      service: settings.service,
      instance,
      controlPlane: settings.controlPlane,
      stateDir: `${settings.stateDir}/${instance}`,
      logger: silentLogger,
      onEvent: (event) => this.heard(event),
    });
  }

  /** Whether every target has a policy in force here. */
  hasPolicies(): boolean {
    const policies = this.bulwark?.state().policies ?? [];
    for (const { policy, service } of policies) this.serviceOf.set(policy, service);
    const guarded = new Set(this.serviceOf.values());
    return this.options.settings.targets.every((target) => guarded.has(target.service));
  }

  start(): void {
    const periodMs = 1_000 / this.options.settings.callsPerSecond;
    this.startedMs = machineMs() + this.options.offset * periodMs;
    this.schedule(periodMs);
  }

  choose(services: readonly string[]): void {
    this.chosen = this.options.settings.targets.filter((target) => services.includes(target.service));
  }

  stats(): AgentStats[] {
    return [...this.counts.values()].map(({ epochs, now: _now, ...counts }) => ({
      ...counts,
      agent: this.options.instance,
      epochs: [...epochs.values()],
    }));
  }

  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    await this.bulwark?.close();
  }

  /** Each call has its own moment, so that a late timer delays one call and not all that follow. */
  private schedule(periodMs: number): void {
    const dueMs = this.startedMs + this.calls * periodMs - machineMs();
    this.timer = setTimeout(
      () => {
        this.calls += 1;
        for (const target of this.chosen) void this.callOnce(target);
        if (!this.stopped) this.schedule(periodMs);
      },
      Math.max(0, dueMs),
    );
  }

  private async callOnce(target: Target): Promise<void> {
    const counts = this.counts.get(target.service);
    if (this.bulwark === undefined || counts === undefined) return;
    const epoch = epochCount(counts);
    epoch.offered += 1;
    counts.calls += 1;
    const options = {
      operation: 'GET /',
      method: 'GET',
      cacheKey: target.service,
      judge: (end: { value: HttpAnswer } | { error: unknown }) =>
        'value' in end ? judgeHttp(end.value.status, end.value.header, Date.now()) : undefined,
      fallback: ({ fixed, error }: FallbackCause): HttpAnswer => {
        if (fixed === undefined) throw error;
        return { ...fixed, header: () => undefined };
      },
      onResult: (result: { kind: 'fresh' | 'degraded' | 'rejected' | 'failed' }) => {
        counts[result.kind] += 1;
      },
    };
    await this.bulwark
      .call(target.service, options, (attempt) => {
        epoch.admitted += 1;
        const headers = { 'x-demo-agent': this.options.instance, 'x-demo-epoch': String(counts.now.epoch) };
        return httpGet(target.url, headers, attempt);
      })
      // How it ended is counted by `onResult`, errors included.
      .catch(() => undefined);
  }

  private heard(event: EngineEvent): void {
    if (event.type !== 'verdict' && event.type !== 'breaker-transition') return;
    const atMs = machineMs();
    const service = this.serviceOf.get(policyName(event.policy));
    const counts = service === undefined ? undefined : this.counts.get(service);
    if (service === undefined || counts === undefined) return;
    if (event.type === 'verdict') {
      const { version, state, share } = event.verdict;
      counts.now = { epoch: version.epoch, state, share };
    }
    const state = event.type === 'verdict' ? event.verdict.state : event.transition.to;
    this.options.onState({ agent: this.options.instance, service, state, atMs });
  }
}

/** Events name a policy with or without its generation. */
function policyName(policy: string): string {
  return policy.split('@')[0] ?? policy;
}

function epochCount(counts: TargetCounts): Writable<EpochCount> {
  const { now } = counts;
  let count = counts.epochs.get(now.epoch);
  if (count === undefined) {
    count = { ...now, offered: 0, admitted: 0 };
    counts.epochs.set(now.epoch, count);
  }
  return count;
}
