import { describe, expect, it } from 'vitest';
import type { Problem } from './problem.js';
import { formatProblems } from './problem.js';
import { MAX_PROBLEMS, validatePolicy } from './validate.js';

const policy = (spec: Record<string, unknown>, metadata: Record<string, unknown> = { name: 'p' }) => ({
  apiVersion: 'bulwark.dev/v1',
  kind: 'ResiliencePolicy',
  metadata,
  spec: { target: { service: 'fraud-api' }, ...spec },
});

function problemsOf(value: unknown): readonly Problem[] {
  const result = validatePolicy(value);
  return result.ok ? [] : result.problems;
}

const paths = (value: unknown) => problemsOf(value).map((one) => one.path);
const only = (value: unknown): Problem => {
  const problems = problemsOf(value);
  expect(problems, formatProblems(problems)).toHaveLength(1);
  return problems[0]!;
};

describe('the smallest policy', () => {
  it('is valid, and comes back as it was typed', () => {
    const typed = policy({});
    expect(validatePolicy(typed)).toEqual({ ok: true, policy: typed });
  });

  it('comes back as a copy that shares nothing', () => {
    const typed = policy({ timeout: { total: '2s' } });
    const result = validatePolicy(typed);
    expect(result.ok && result.policy.spec).not.toBe(typed.spec);
    expect(result.ok && result.policy.spec.timeout).not.toBe((typed.spec as { timeout?: unknown }).timeout);
  });
});

describe('C039: unknown, misspelt and misplaced fields are refused with the nearest known name', () => {
  it.each([
    [{ retires: 3 }, 'spec.retires', 'spec.retry'],
    [{ breaker: { trip: {} } }, 'spec.breaker', 'spec.circuitBreaker'],
    [{ retry: { circuitBreaker: {} } }, 'spec.retry.circuitBreaker', 'spec.circuitBreaker'],
    [{ Timeout: { total: '2s' } }, 'spec.Timeout', 'spec.timeout'],
    [{ timeout: { totl: '2s' } }, 'spec.timeout.totl', 'spec.timeout.total'],
    [{ timeout: { perTryTimeout: '2s' } }, 'spec.timeout.perTryTimeout', 'spec.timeout.attempt'],
    [{ retry: { attempts: 3 } }, 'spec.retry.attempts', 'spec.retry.maxAttempts'],
    [{ maxConcurrent: 3 }, 'spec.maxConcurrent', 'spec.bulkhead.maxConcurrent'],
    [{ fallback: [{ stale: {} }] }, 'spec.fallback[0].stale', 'spec.fallback[0].lastGood'],
  ])('%j', (spec, path, suggestion) => {
    const found = problemsOf(policy(spec)).find((one) => one.reason === 'unknown');
    expect(found).toMatchObject({ path, suggestion });
  });

  it('finds them outside spec too', () => {
    expect(only({ ...policy({}), sepc: {} })).toMatchObject({ path: 'sepc', suggestion: 'spec' });
    expect(only(policy({}, { name: 'p', lables: {} }))).toMatchObject({ suggestion: 'metadata.labels' });
  });

  it('suggests nothing when nothing is near', () => {
    expect(only(policy({ zzzzzzzz: 1 })).suggestion).toBeUndefined();
  });
});

describe('C041: nothing is coerced', () => {
  it.each(['abc', '5', '"5"', NaN, Infinity, -Infinity, 1e400, true, [3], { n: 3 }, 2.5, 0, 11, -1])(
    'refuses maxAttempts: %j',
    (maxAttempts) => {
      const found = only(policy({ retry: { maxAttempts } }));
      expect(found).toMatchObject({ path: 'spec.retry.maxAttempts', allowed: 'a whole number from 1 to 10' });
    },
  );

  it('refuses a number where a text belongs, and a text where a switch belongs', () => {
    expect(paths(policy({ fallback: [{ static: { body: 5 } }] }))).toEqual(['spec.fallback[0].static.body']);
    const trip = { failureRate: { ratio: '50%' } };
    expect(paths(policy({ circuitBreaker: { trip, failures: { timeouts: 'yes' } } }))).toEqual([
      'spec.circuitBreaker.failures.timeouts',
    ]);
  });
});

describe('C045: ratios have one unit', () => {
  it.each([-1, 0, 100, 101, 0.2, '12.5', '20', '101%', '-1%', '20 %'])('refuses a budget of %j', (ratio) => {
    expect(only(policy({ retry: { budget: { ratio } } }))).toMatchObject({
      path: 'spec.retry.budget.ratio',
      value: ratio,
      allowed: 'a percentage from 0% to 100%, such as 10% or 12.5%',
    });
  });

  it.each(['0%', '20%', '12.5%', '100%'])('takes a budget of %s', (ratio) => {
    expect(paths(policy({ retry: { budget: { ratio } } }))).toEqual([]);
  });

  it('says what a number lacks', () => {
    expect(only(policy({ retry: { budget: { ratio: 20 } } })).message).toBe('20 has no % sign');
  });

  it('leaves the ends out where they make no sense', () => {
    const breaker = (ratio: string, steps: string[]) =>
      policy({ circuitBreaker: { trip: { failureRate: { ratio } }, recovery: { steps } } });
    expect(paths(breaker('0%', ['100%']))).toEqual([
      'spec.circuitBreaker.trip.failureRate.ratio',
      'spec.circuitBreaker.recovery.steps[0]',
    ]);
    expect(paths(breaker('100%', ['0.1%', '99.9%']))).toEqual([]);
  });
});

describe('C047: durations stay far below what a timer can hold', () => {
  const trip = { consecutiveFailures: 10 };
  it.each([
    [
      { circuitBreaker: { trip, cooldown: { initial: '720h', max: '720h' } } },
      'spec.circuitBreaker.cooldown.initial',
    ],
    [{ timeout: { total: '600h' } }, 'spec.timeout.total'],
    [{ fallback: [{ lastGood: { maxAge: '1440h' } }] }, 'spec.fallback[0].lastGood.maxAge'],
  ])('refuses %j with the range', (spec, path) => {
    const found = problemsOf(policy(spec)).find((one) => one.path === path);
    expect(found).toMatchObject({ reason: 'invalid' });
    expect(found?.message).toContain('out of range');
    expect(found?.allowed).toMatch(/^a duration from \d+ms to \d+h/);
  });

  it.each([
    ['25d', 'spec.timeout.total', { timeout: { total: '25d' } }],
    ['60d', 'spec.fallback[0].lastGood.maxAge', { fallback: [{ lastGood: { maxAge: '60d' } }] }],
  ])('refuses %s, and suggests nothing that is out of range too', (_, path, spec) => {
    expect(only(policy(spec))).toMatchObject({ path });
    expect(only(policy(spec)).suggestion).toBeUndefined();
  });
});

describe('C049: a duration has a unit', () => {
  it.each([
    [30, '30 has no unit', undefined],
    ['30', '"30" has no unit', undefined],
    ['1h30m', '"1h30m" is not a duration', undefined],
    ['1.5s', '"1.5s" is not a duration', '1500ms'],
    [' 5s', '" 5s" is not a duration', '5s'],
    ['5 S', '"5 S" is not a duration', '5s'],
    ['-5s', '"-5s" is not a duration', undefined],
    ['1d', '"1d" is not a duration', undefined],
    ['0s', '"0s" is not a duration', undefined],
  ])('refuses timeout.total: %j', (total, message, suggestion) => {
    const found = only(policy({ timeout: { total } }));
    expect(found).toMatchObject({ path: 'spec.timeout.total', message });
    expect(found.suggestion).toBe(suggestion);
  });

  it('C021: refuses an open time of zero with its path', () => {
    const trip = { consecutiveFailures: 10 };
    expect(paths(policy({ circuitBreaker: { trip, cooldown: { initial: '0s' } } }))).toEqual([
      'spec.circuitBreaker.cooldown.initial',
    ]);
  });
});

describe('C053: attempts are attempts', () => {
  it('knows no `retries`, whose count could be read in two ways, and points to maxAttempts', () => {
    expect(only(policy({ retry: { maxRetries: 3 } }))).toMatchObject({
      reason: 'unknown',
      suggestion: 'spec.retry.maxAttempts',
    });
  });
});

describe('C057: what was typed comes back', () => {
  it('keeps 2s, 2000ms, 120s and 12.50% as they are', () => {
    const typed = policy({
      timeout: { attempt: '1000ms', total: '2s' },
      retry: { budget: { ratio: '12.50%', window: '120s' } },
    });
    expect(validatePolicy(typed)).toEqual({ ok: true, policy: typed });
  });
});

describe('C059: a retry may be bounded by attempts, by a budget, or both', () => {
  it.each([
    [{ budget: { ratio: '20%' } }],
    [{ maxAttempts: 2 }],
    [{ maxAttempts: 2, budget: { ratio: '20%', minPerSecond: 1, window: '10s' } }],
    [{ maxAttempts: 1, budget: { ratio: '20%' } }],
    [{}],
  ])('takes %j', (retry) => {
    expect(paths(policy({ retry }))).toEqual([]);
  });
});

describe('metadata', () => {
  it.each(['A', 'a/b', '-a', 'a-', 'a.b', 'a_b', '', 'x'.repeat(64), 'ä', '../x', 'a\n'])(
    'refuses the name %j',
    (name) => {
      expect(paths(policy({}, { name }))).toEqual(['metadata.name']);
    },
  );

  it('takes what Kubernetes clients send back', () => {
    const metadata = {
      name: 'p',
      namespace: 'shop',
      labels: { app: 'x', 'example.com/team': '' },
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{"a":1}' },
      uid: '0b2c',
      resourceVersion: '42',
      generation: 3,
      creationTimestamp: null,
      managedFields: [{ manager: 'kubectl', operation: 'Update', fieldsV1: { 'f:spec': {} } }],
    };
    expect(paths({ ...policy({}, metadata), status: { observedGeneration: 2, later: { x: 1 } } })).toEqual(
      [],
    );
  });

  it('refuses labels that are none, with the key in the path', () => {
    const labels = { 'bad key': 'x', ok: 'no spaces here', n: 5, e: null };
    expect(paths(policy({}, { name: 'p', labels }))).toEqual([
      'metadata.labels[bad key]',
      'metadata.labels.ok',
      'metadata.labels.n',
      'metadata.labels.e',
    ]);
  });

  it('bounds annotations together', () => {
    const annotations = { a: 'x'.repeat(200_000), b: 'x'.repeat(100_000) };
    expect(only(policy({}, { name: 'p', annotations })).path).toBe('metadata.annotations');
  });
});

describe('null', () => {
  it('C163: is the same as absent for an optional field', () => {
    const result = validatePolicy(policy({ circuitBreaker: null, timeout: { attempt: null, total: '2s' } }));
    expect(result).toEqual({ ok: true, policy: policy({ timeout: { total: '2s' } }) });
  });

  it('is refused where leaving it out would widen what a selector selects', () => {
    expect(paths(policy({ callers: { matchLabels: { app: null } } }))).toEqual([
      'spec.callers.matchLabels.app',
    ]);
    expect(paths(policy({ callers: { matchLabels: null } }))).toEqual(['spec.callers.matchLabels']);
    expect(paths(policy({ callers: {} }))).toEqual(['spec.callers.matchLabels']);
  });

  it('is no target', () => {
    expect(paths(policy({ target: null }))).toEqual(['spec.target']);
  });
});

describe('all problems are in one answer', () => {
  it('those of the schema and those across fields, each once', () => {
    const found = paths(
      policy({
        retires: 1,
        contract: 'required',
        timeout: { attempt: '3s', total: '2s' },
        circuitBreaker: { trip: { failureRate: { ratio: 50 } }, probe: { maxCalls: 1, successesToClose: 2 } },
        fallback: [{ static: { body: 'x', status: 99 } }],
      }),
    );
    expect(found.sort()).toEqual([
      'spec.circuitBreaker.probe.maxCalls',
      'spec.circuitBreaker.trip.failureRate.ratio',
      'spec.fallback',
      'spec.fallback[0].static.status',
      'spec.retires',
      'spec.timeout.attempt',
    ]);
  });

  it('lists a bounded number and counts the rest', () => {
    const spec = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`zzzz${i}`, 1]));
    const problems = problemsOf(policy(spec));
    expect(problems).toHaveLength(MAX_PROBLEMS + 1);
    expect(problems.at(-1)?.message).toBe('and 800 more problems');
  });
});

describe('values from outside', () => {
  it.each([null, undefined, 5, 'text', [], () => 1, Symbol('x'), 10n, new Date(0), new Map()])(
    'refuses %s without throwing',
    (value) => {
      expect(validatePolicy(value).ok).toBe(false);
    },
  );

  it('refuses keys that reach a prototype, and takes nothing from one', () => {
    const value: unknown = JSON.parse(
      '{"apiVersion":"bulwark.dev/v1","kind":"ResiliencePolicy","metadata":{"name":"p"},"spec":{"target":{"service":"x"},"__proto__":{"mode":"Shadow"},"constructor":{}}}',
    );
    expect(problemsOf(value).map((one) => [one.path, one.reason])).toEqual([
      ['spec.__proto__', 'forbidden'],
      ['spec.constructor', 'forbidden'],
    ]);
    const inherited: unknown = Object.create(policy({}));
    expect(paths(inherited)).toEqual(['apiVersion', 'kind', 'metadata', 'spec']);
    expect(paths(policy({ toString: 1 }))).toEqual(['spec.toString']);
  });

  it('refuses what refers to itself or is nested too deep', () => {
    const loop: Record<string, unknown> = policy({});
    loop['spec'] = { target: { service: 'x' }, timeout: loop };
    expect(validatePolicy(loop).ok).toBe(false);
    let deep: unknown = 1;
    for (let i = 0; i < 10_000; i += 1) deep = [deep];
    expect(problemsOf(policy({ timeout: deep })).map((one) => one.message)).toContain(
      'nested deeper than 64 levels',
    );
  });

  it('bounds objects that share parts of themselves', () => {
    let wide: unknown = ['x'];
    for (let i = 0; i < 20; i += 1) wide = Array.from({ length: 9 }, () => wide);
    expect(problemsOf(policy({ timeout: wide }))[0]?.message).toContain('more than 50000 values');
  });

  it('refuses a long list in time that grows with its length alone', () => {
    const statuses = Array.from({ length: 45_000 }, (_, i) => i);
    const begun = performance.now();
    expect(validatePolicy(policy({ retry: { retryOn: { statuses } } })).ok).toBe(false);
    expect(performance.now() - begun).toBeLessThan(1_000);
  });
});

describe('lists', () => {
  it('hold each entry once', () => {
    expect(problemsOf(policy({ retry: { methods: ['GET', 'HEAD', 'GET'] } }))).toMatchObject([
      { path: 'spec.retry.methods[2]', reason: 'duplicate' },
    ]);
    expect(paths(policy({ retry: { retryOn: { statuses: [503, '5xx', 503] } } }))).toEqual([
      'spec.retry.retryOn.statuses[2]',
    ]);
    expect(paths(policy({ target: { service: 'x', operations: ['GET /a', 'GET /a'] } }))).toEqual([
      'spec.target.operations[1]',
    ]);
  });

  it('are checked entry by entry', () => {
    const per = ['target', 'caller.', 'caller.zone', 'call.shard', 'caller.a b', 'label.x'];
    const circuitBreaker = { trip: { consecutiveFailures: 10 }, per: per.slice(0, 4) };
    expect(paths(policy({ circuitBreaker }))).toEqual(['spec.circuitBreaker.per[1]']);
    expect(paths(policy({ circuitBreaker: { ...circuitBreaker, per: per.slice(4) } }))).toEqual([
      'spec.circuitBreaker.per[0]',
      'spec.circuitBreaker.per[1]',
    ]);
  });

  it('of fallbacks hold exactly one kind an entry', () => {
    expect(paths(policy({ fallback: [{}, { static: { body: '' }, lastGood: { maxAge: '1s' } }] }))).toEqual([
      'spec.fallback[0]',
      'spec.fallback[1]',
    ]);
  });
});
