/** `spec.circuitBreaker`. */
import { duration, either, flag, integer, list, number, object, oneOf, percent, text } from './builders.js';
import { grpcStatuses, statuses } from './calls.js';

/** Parts of breaker keys. The label or attribute after the dot follows the rules of label keys. */
export const PER =
  '^(?:target|operation|caller\\.[A-Za-z0-9](?:[-A-Za-z0-9_./]{0,100}[A-Za-z0-9])?|call\\.[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)$';

const rateRule = () => ({
  required: {
    ratio: percent('Trips at this share of the calls or above.', { min: 0, max: 100, above: true }),
  },
  optional: {
    minimumCalls: integer(
      'Fewer calls in the window decide nothing. Absent = 20, or what the window holds if less. From 1 to 1000000.',
      1,
      1_000_000,
    ),
    window: either(
      'What is looked at: a span of time, or, with scope Instance only, the last N calls. Absent = 10s.',
      duration('The last calls within this span.', '250ms', '1h'),
      object('The last calls by number, in each process.', {
        required: { calls: integer('How many. From 1 to 10000.', 1, 10_000) },
      }),
    ),
  },
});

const slowRule = rateRule();

const trip = object('When the breaker opens: any rule that holds. At least one.', {
  minProperties: 1,
  optional: {
    failureRate: object('By the share of failures.', rateRule()),
    slowRate: object('By the share of slow calls.', {
      required: {
        ...slowRule.required,
        slowerThan: duration('A call that takes longer is slow. Less than the attempt timeout.', '1ms', '1h'),
      },
      optional: slowRule.optional,
    }),
    consecutiveFailures: integer(
      'By failures in a row, in scope Instance. Over a fleet, which has no order: this many failures and no success since the first of them, within 500 ms; at least 10. From 1 to 10000.',
      1,
      10_000,
    ),
  },
});

const probe = object('Calls that may pass half-open, to see whether the dependency is back.', {
  optional: {
    concurrent: integer('At once, over the whole scope. Absent = 1. From 1 to 100.', 1, 100),
    successesToClose: integer('In a row. Absent = 1. From 1 to 100.', 1, 100),
    timeout: duration(
      'Of one probe. Absent = the attempt timeout (else the total), at most 1s.',
      '1ms',
      '1h',
    ),
    maxCalls: integer(
      'Bounds one half-open episode; at least successesToClose. Absent = unbounded. From 1 to 1000.',
      1,
      1_000,
    ),
  },
});

export const circuitBreaker = object('Stops calls to a dependency that fails. Absent = no breaker.', {
  required: { trip },
  optional: {
    scope: oneOf(
      'Who decides and obeys together. Fleet: every agent. Region, Zone: those of one region or zone. Instance: each process alone. Absent = Fleet.',
      ['Fleet', 'Region', 'Zone', 'Instance'],
    ),
    per: list(
      'What a breaker is kept for, one for each value. Absent = [target].',
      text(
        'target, operation, caller.LABEL (of the calling agent) or call.ATTRIBUTE (given with the call).',
        {
          max: 128,
          pattern: PER,
          form: 'target, operation, caller.LABEL or call.ATTRIBUTE',
        },
      ),
      { min: 1, max: 4 },
    ),
    quorum: object('How many agents must see it before a whole scope opens. Not used in scope Instance.', {
      optional: {
        instances: integer(
          'At least this many, or all that called, if fewer. Absent = 2. From 1 to 10000.',
          1,
          10_000,
        ),
        share: percent('At least this share of those that called. 0% = no share asked. Absent = 20%.', {
          min: 0,
          max: 100,
        }),
      },
    }),
    failures: object(
      "What is the dependency's failure. Each list has its own default; an empty one = none of these.",
      {
        optional: {
          statuses: statuses('HTTP statuses. Absent = 5xx.'),
          grpc: grpcStatuses('gRPC statuses. Absent = UNAVAILABLE, DEADLINE_EXCEEDED, INTERNAL.'),
          timeouts: flag('Whether an attempt that used up its full timeout is one. Absent = true.'),
        },
      },
    ),
    cooldown: object('How long the breaker stays open before a probe.', {
      optional: {
        initial: duration('The first time. Absent = 5s.', '10ms', '24h'),
        max: duration('It never grows above this. Absent = 60s.', '10ms', '24h'),
        factor: number(
          'By which it grows after each failed probe: 1 = it stays. Absent = 2. From 1 to 10.',
          1,
          10,
        ),
      },
    }),
    probe,
    recovery: object('How calls come back after a good probe.', {
      optional: {
        steps: list(
          'Shares of calls let through, rising, before all are. Empty = the probe closes the breaker. Absent = 10%, 25%, 50%.',
          percent('A share.', { min: 0, max: 100, above: true, below: true }),
          { max: 10, repeats: true },
        ),
        stepFor: duration('How long a step lasts at least. Absent = 5s.', '10ms', '1h'),
      },
    }),
  },
});
