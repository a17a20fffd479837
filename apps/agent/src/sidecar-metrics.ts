import type { AgentState, EngineEvent } from '@bulwark/agent';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { AcceptedWork } from './accepted-work.js';
import type { InboundCallEnd } from './inbound-call.js';
import { CALL_SECONDS, InboundMetrics, type InboundSource } from './inbound-metrics.js';
import type { ProxiedCallEnd } from './proxied-call-end.js';
import type { StrippedMarks } from './stripped-marks.js';

export interface MetricsSource {
  readonly state: () => AgentState | undefined;
  readonly outbound: AcceptedWork;
  /** Undefined = there is no inbound side, and no metric of it. */
  readonly inbound: InboundSource | undefined;
  readonly stripped: StrippedMarks;
}

/** Names called through the proxy may be anything; further ones are counted together. */
const MAX_SERVICES = 200;
/** Breaker keys shown; the number left out is a metric of its own. */
const MAX_KEYS = 1_000;
const STATES = ['closed', 'open', 'half-open', 'recovering'] as const;

/** What Prometheus sees of a sidecar. Counts are read from the engine at each scrape, so that calls pay nothing. */
export class SidecarMetrics {
  readonly registry = new Registry();
  readonly #services = new Set<string>();
  readonly #duration: Histogram<'service' | 'outcome'>;
  readonly #transitions: Counter<'policy' | 'from' | 'to' | 'cause'>;
  readonly #inbound: InboundMetrics | undefined;

  constructor(given: MetricsSource) {
    const source = { ...given, state: oncePerScrape(given.state) };
    const registers = [this.registry];
    collectDefaultMetrics({ register: this.registry });
    this.#duration = new Histogram({
      name: 'bulwark_call_duration_seconds',
      help: 'Time of logical calls through the proxy, retries and waiting included.',
      labelNames: ['service', 'outcome'],
      buckets: CALL_SECONDS,
      registers,
    });
    this.#transitions = new Counter({
      name: 'bulwark_breaker_transitions_total',
      help: "Changes of state of this agent's own breakers.",
      labelNames: ['policy', 'from', 'to', 'cause'],
      registers,
    });
    this.#perPolicyCounters(source);
    this.#perPolicyGauges(source);
    this.#ofTheAgent(source);
    new Counter({
      name: 'bulwark_marks_stripped_total',
      help: 'Calls to the service (inbound) and answers of upstreams (outbound) whose Bulwark headers were not believed.',
      labelNames: ['side'],
      registers,
      collect() {
        this.reset();
        for (const [side, count] of Object.entries(source.stripped.counts())) this.inc({ side }, count);
      },
    });
    this.#inbound = source.inbound && new InboundMetrics(this.registry, source.inbound);
  }

  /** A call to the service ended. */
  answered(end: InboundCallEnd): void {
    this.#inbound?.answered(end);
  }

  called({ service, outcome, seconds }: ProxiedCallEnd): void {
    const known = this.#services.has(service) || this.#services.size < MAX_SERVICES;
    if (known) this.#services.add(service);
    this.#duration.observe({ service: known ? service : 'other', outcome }, seconds);
  }

  heard(event: EngineEvent): void {
    if (event.type !== 'breaker-transition') return;
    const { from, to, reason } = event.transition;
    this.#transitions.inc({
      policy: withoutGeneration(event.policy),
      from: word(from),
      to: word(to),
      cause: word(reason),
    });
  }

  #perPolicyCounters(source: MetricsSource): void {
    const counter = (
      name: string,
      help: string,
      label: string | undefined,
      read: (totals: Totals) => readonly (readonly [string, number])[],
    ): void => {
      new Counter({
        name,
        help,
        labelNames: label === undefined ? ['policy'] : ['policy', label],
        registers: [this.registry],
        collect() {
          this.reset();
          for (const { policy, totals } of source.state()?.policies ?? []) {
            for (const [value, count] of totals === undefined ? [] : read(totals)) {
              this.inc(label === undefined ? { policy } : { policy, [label]: word(value) }, count);
            }
          }
        },
      });
    };
    counter('bulwark_calls_total', 'Logical calls that a policy guarded.', undefined, (t) => [['', t.calls]]);
    counter('bulwark_call_attempts_total', 'Attempts made, by whether they were retries.', 'attempt', (t) => [
      ['first', t.attempts - t.retries],
      ['retry', t.retries],
    ]);
    counter('bulwark_call_rejections_total', 'Calls a guard refused, by reason.', 'reason', (t) =>
      Object.entries(t.rejected),
    );
    counter('bulwark_call_degraded_total', 'Calls answered by a fallback, by mode.', 'mode', (t) =>
      Object.entries(t.degraded),
    );
    counter('bulwark_call_failures_total', 'Calls that ended in failure.', undefined, (t) => [
      ['', t.failed],
    ]);
    counter('bulwark_call_timeouts_total', 'Attempts that ran out of time.', undefined, (t) => [
      ['', t.timeouts],
    ]);
    counter('bulwark_retry_budget_refusals_total', 'Retries their budget did not allow.', undefined, (t) => [
      ['', t.retriesRefused],
    ]);
    counter('bulwark_shadow_rejections_total', 'Calls shadow mode would have refused.', undefined, (t) => [
      ['', t.shadowRejected],
    ]);
  }

  #perPolicyGauges(source: MetricsSource): void {
    /** Undefined = this policy has none. */
    const gauge = (name: string, help: string, read: (totals: Totals) => number | undefined): void => {
      new Gauge({
        name,
        help,
        labelNames: ['policy'],
        registers: [this.registry],
        collect() {
          this.reset();
          for (const { policy, totals } of source.state()?.policies ?? []) {
            const value = totals && read(totals);
            if (value !== undefined) this.set({ policy }, value);
          }
        },
      });
    };
    gauge('bulwark_bulkhead_usage', 'Attempts in flight.', (totals) => totals.inFlight);
    gauge(
      'bulwark_bulkhead_limit',
      'Attempts that may be in flight now: an adaptive limit moves.',
      (totals) => totals.limit,
    );
    gauge('bulwark_bulkhead_waiting', 'Calls that wait for a place.', (totals) => totals.waiting);
    new Gauge({
      name: 'bulwark_breaker_state',
      help: '1 for the state calls meet now, 0 for the others.',
      labelNames: ['policy', 'key', 'state', 'scope'],
      registers: [this.registry],
      collect() {
        this.reset();
        for (const { policy, key, state, by } of breakersOf(source).slice(0, MAX_KEYS)) {
          for (const name of STATES)
            this.set({ policy, key, state: word(name), scope: by }, Number(name === state));
        }
      },
    });
    new Gauge({
      name: 'bulwark_breaker_keys_hidden',
      help: `Breaker keys beyond the ${MAX_KEYS} that are shown.`,
      registers: [this.registry],
      collect() {
        this.set(Math.max(0, breakersOf(source).length - MAX_KEYS));
      },
    });
  }

  #ofTheAgent(source: MetricsSource): void {
    const gauge = (name: string, help: string, read: (state: AgentState) => number | undefined): void => {
      new Gauge({
        name,
        help,
        registers: [this.registry],
        collect() {
          const state = source.state();
          const value = state && read(state);
          if (value === undefined) this.remove();
          else this.set(value);
        },
      });
    };
    gauge('bulwark_control_plane_connected', '1 while the stream to the control plane stands.', (state) =>
      Number(state.controlPlane.state === 'connected'),
    );
    gauge('bulwark_config_age_seconds', 'Since the control plane was last heard; absent = never.', (state) =>
      state.controlPlane.silentMs === undefined ? undefined : state.controlPlane.silentMs / 1_000,
    );
    gauge(
      'bulwark_config_revision',
      'Store revision of the policies in force.',
      (state) => state.version?.revision,
    );
    gauge('bulwark_config_policies', 'Policies in force.', (state) => state.policies.length);
    gauge(
      'bulwark_config_refused',
      'Policies whose newest generation was refused.',
      (state) => Object.keys(state.refused).length,
    );
    gauge('bulwark_ready', '1 when calls are guarded as someone decided.', (state) =>
      Number(state.readiness.ready),
    );
    gauge(
      'bulwark_proxy_in_flight',
      'Requests accepted and not answered yet.',
      () => source.outbound.inFlight,
    );
    gauge('bulwark_bypass', '1 while a person has taken the guards out.', (state) =>
      Number(state.bypass !== undefined),
    );
  }
}

type Totals = NonNullable<AgentState['policies'][number]['totals']>;

function breakersOf(source: MetricsSource) {
  return (source.state()?.policies ?? []).flatMap(({ policy, breakers }) =>
    breakers.map((breaker) => ({ policy, ...breaker })),
  );
}

/** Words have underscores in telemetry. */
function word(text: string): string {
  return text.replaceAll('-', '_');
}

/** "shop/reco@7" → "shop/reco". */
function withoutGeneration(label: string): string {
  const at = label.lastIndexOf('@');
  return at < 0 ? label : label.slice(0, at);
}

/** All metrics of a scrape are collected in one go, and a state with thousands of breakers is not made for each of them. */
function oncePerScrape<T>(read: () => T): () => T {
  let last: { readonly value: T } | undefined;
  return () => {
    if (last === undefined) {
      last = { value: read() };
      setImmediate(() => (last = undefined));
    }
    return last.value;
  };
}
