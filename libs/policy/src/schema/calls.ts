/** The parts of `spec` about single calls: timeout, retry, bulkhead. */
import { duration, either, integer, list, object, oneOf, percent, text } from './builders.js';
import { GRPC_STATUSES } from './grpc.js';

/** 429, 503, or a whole class. */
export const statuses = (description: string) =>
  list(
    `${description} Numbers from 400 to 599, or "4xx", "5xx".`,
    either('An HTTP status.', integer('One status.', 400, 599), oneOf('A whole class.', ['4xx', '5xx'])),
    { max: 64 },
  );

export const grpcStatuses = (description: string) =>
  list(`${description} Names as gRPC spells them.`, oneOf('A gRPC status.', GRPC_STATUSES), { max: 16 });

export const timeout = object('How long a call may take.', {
  optional: {
    attempt: duration(
      'Of one attempt; less than total. Absent = what is left of total. An attempt that used it up is a failure of the dependency.',
      '1ms',
      '1h',
    ),
    total: duration(
      'Of the whole call: attempts, waits and queues; a shorter deadline of the caller wins. Absent = 10s.',
      '1ms',
      '1h',
    ),
  },
});

const METHODS = ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE', 'POST', 'PATCH'] as const;

export const retry = object('Further attempts after a failed one. Absent = one attempt.', {
  optional: {
    maxAttempts: integer(
      'Attempts in all, the first one included: 1 = no retry. Absent = 3. From 1 to 10.',
      1,
      10,
    ),
    backoff: object('The wait before another attempt.', {
      optional: {
        base: duration(
          'Ceiling of the first wait; it doubles from attempt to attempt. Absent = 100ms.',
          '1ms',
          '1h',
        ),
        max: duration('The ceiling never passes this. Absent = 2s.', '1ms', '1h'),
        jitter: oneOf('full: uniform between 0 and the ceiling. none: the ceiling itself. Absent = full.', [
          'full',
          'none',
        ]),
      },
    }),
    retryOn: object('What is tried again. Each list has its own default; an empty one = none of these.', {
      optional: {
        statuses: statuses('HTTP statuses. Absent = 429, 502, 503, 504.'),
        grpc: grpcStatuses('gRPC statuses. Absent = UNAVAILABLE.'),
        failures: list(
          'Transport failures: connect, reset, timeout (of an attempt). Absent = all three.',
          oneOf('A transport failure.', ['connect', 'reset', 'timeout']),
          { max: 3 },
        ),
      },
    }),
    methods: list(
      'HTTP methods that may be tried again. Absent = the idempotent ones. Any other makes one attempt, unless the call carries an idempotency key.',
      oneOf('An HTTP method.', METHODS),
      { max: 8 },
    ),
    budget: object(
      'Bounds retries over all calls, beside maxAttempts: whichever ends first. Each process may make the larger of ratio × its own first attempts and the floor ÷ the live agents of its service. Absent = 10%, 10 per second, 60s.',
      {
        optional: {
          ratio: percent('Of first attempts. 0% = the floor alone. Absent = 10%.', { min: 0, max: 100 }),
          minPerSecond: integer(
            'Floor, in retries per second of the whole service. Absent = 10. From 0 to 100000.',
            0,
            100_000,
          ),
          window: duration('Over which both are counted. Absent = 60s.', '1s', '1h'),
        },
      },
    ),
  },
});

export const bulkhead = object('How many calls may be under way in one process. Absent = no limit.', {
  required: {
    maxConcurrent: integer('Attempts under way at once, in each process. From 1 to 100000.', 1, 100_000),
  },
  optional: {
    maxQueued: integer(
      'Calls that may wait for a place; more are rejected at once. 0 and absent = no queue. At most 100000.',
      0,
      100_000,
    ),
    maxWait: duration('How long one may wait. Absent = until its deadline.', '1ms', '1h'),
    adaptive: oneOf(
      'How the limit follows what the dependency can take. none: it is maxConcurrent. gradient: between 1 and maxConcurrent, by the gradient of durations against the unloaded one; it begins at 10, shrinks when calls queue in the dependency, time out or are told "too many", and grows when it is reached. Not for long streams. Absent = none.',
      ['none', 'gradient'],
    ),
  },
});

/** "GET /v1/recs" or "pkg.Service/Method"; compared as it stands. */
export const OPERATION = '^(?:[A-Z]{1,16} /[!-~]*|[A-Za-z_][A-Za-z0-9_.]*/[A-Za-z_][A-Za-z0-9_]*)$';
export const operation = (description: string) =>
  text(`${description} "METHOD /path" or "package.Service/Method".`, {
    min: 1,
    max: 256,
    pattern: OPERATION,
    form: '"METHOD /path" (GET /v1/recs) or "package.Service/Method"',
  });
