import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { AcceptedWork } from './accepted-work.js';
import type { InboundCallEnd } from './inbound-call.js';
import type { JoinTotals, TraceJoin } from './trace-join.js';

export interface InboundSource {
  readonly work: AcceptedWork;
  readonly join: TraceJoin;
}

/** Of calls, in both directions. */
export const CALL_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

/** What Prometheus sees of the inbound side and of the join. */
export class InboundMetrics {
  readonly #duration: Histogram<'outcome'>;

  constructor(registry: Registry, { work, join }: InboundSource) {
    const registers = [registry];
    this.#duration = new Histogram({
      name: 'bulwark_inbound_call_duration_seconds',
      help: 'Time of calls to the service, from their head to the last byte of the answer.',
      labelNames: ['outcome'],
      buckets: CALL_SECONDS,
      registers,
    });
    new Gauge({
      name: 'bulwark_inbound_in_flight',
      help: 'Calls to the service accepted and not answered yet.',
      registers,
      collect() {
        this.set(work.inFlight);
      },
    });
    new Gauge({
      name: 'bulwark_join_calls_in_flight',
      help: 'Calls to the service that outbound calls can be joined to.',
      registers,
      collect() {
        this.set(join.size);
      },
    });
    this.#joined(registers, () => join.totals());
  }

  answered({ outcome, seconds }: InboundCallEnd): void {
    this.#duration.observe({ outcome }, seconds);
  }

  #joined(registers: Registry[], totals: () => JoinTotals): void {
    new Counter({
      name: 'bulwark_join_lookups_total',
      help: 'Outbound calls by what joined them to an inbound call: its parent span, its trace, one that ended unanswered (late), or nothing.',
      labelNames: ['found'],
      registers,
      collect() {
        this.reset();
        const { parent, trace, late, none } = totals();
        for (const [found, count] of Object.entries({ parent, trace, late, none })) {
          this.inc({ found }, count);
        }
      },
    });
    new Counter({
      name: 'bulwark_join_overflow_total',
      help: 'Inbound calls that no outbound call could be joined to, because too many were in flight.',
      registers,
      collect() {
        this.reset();
        this.inc(totals().overflow);
      },
    });
  }
}
