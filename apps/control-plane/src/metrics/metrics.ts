import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';

/** Read when somebody scrapes. */
export interface Observed {
  agents(): Readonly<Record<string, number>>;
  breakers(): Readonly<Record<string, number>>;
  watches(): number;
  deciding(): boolean;
}

const FAST = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const NAME = {
  push: 'bulwark_config_push_duration_seconds',
  refusals: 'bulwark_config_nacks_total',
  agents: 'bulwark_agents',
  breakers: 'bulwark_breakers',
  transitions: 'bulwark_breaker_transitions_total',
  store: 'bulwark_store_operation_duration_seconds',
  http: 'bulwark_http_request_duration_seconds',
  watches: 'bulwark_http_watches',
  decider: 'bulwark_fleet_decider',
  reports: 'bulwark_fleet_reports_total',
} as const;

/** Everything this replica measures. Labels are bounded: no names of agents, policies or keys. */
export class Metrics {
  readonly registry = new Registry();
  readonly push = this.histogram(NAME.push, 'From the write of an update to its answer by the agent.');
  readonly refusals = this.counter(NAME.refusals, 'Resources that agents refused.');
  readonly transitions = this.counter(NAME.transitions, 'Changes of fleet breakers.', [
    'from',
    'to',
    'reason',
  ]);
  readonly store = this.histogram(NAME.store, 'Requests to the store.', ['operation', 'result']);
  readonly http = this.histogram(NAME.http, 'Requests to the API; watches are not counted.', [
    'method',
    'resource',
    'code',
  ]);
  readonly reports = this.counter(NAME.reports, 'Reports of agents, by what became of them.', ['result']);

  constructor(observed: Observed) {
    collectDefaultMetrics({ register: this.registry });
    const states = (name: string, help: string, read: () => Readonly<Record<string, number>>): void => {
      const gauge: Gauge<'state'> = new Gauge({
        name,
        help,
        labelNames: ['state'],
        registers: [this.registry],
        collect: () => {
          gauge.reset();
          for (const [state, count] of Object.entries(read())) gauge.set({ state }, count);
        },
      });
    };
    states(NAME.agents, 'Agents of this replica by state.', () => observed.agents());
    states(NAME.breakers, 'Fleet breakers by state, as this replica knows them.', () => observed.breakers());
    this.gauge(NAME.watches, 'Open watches.', () => observed.watches());
    this.gauge(NAME.decider, '1 on the replica that decides for the fleet.', () =>
      Number(observed.deciding()),
    );
  }

  private gauge(name: string, help: string, read: () => number): void {
    const gauge: Gauge = new Gauge({
      name,
      help,
      registers: [this.registry],
      collect: () => gauge.set(read()),
    });
  }

  private counter<T extends string = never>(name: string, help: string, labelNames: T[] = []): Counter<T> {
    return new Counter({ name, help, labelNames, registers: [this.registry] });
  }

  private histogram<T extends string = never>(
    name: string,
    help: string,
    labelNames: T[] = [],
  ): Histogram<T> {
    return new Histogram({ name, help, labelNames, buckets: FAST, registers: [this.registry] });
  }
}
