import type { BenchContext, Reach } from '../harness.js';
import { degraded, failed, latencyMs, percentOf, type Caller, type Ended } from './caller.js';
import type { Dependency } from './dependency.js';
import type { Behaviour } from './messages.js';
import { openLoop } from './open-loop.js';
import { breakerLine, policy, staticLine } from './policy.js';

const PER_SECOND = 100;
const HANG: Behaviour = { kind: 'hang' };
const WELL: Behaviour = { kind: 'answer', afterMs: 0 };
/** What the caller waits by itself where nothing ends its calls sooner. */
const PATIENCE_MS = 500;

/** The rows of the table: a service each, all down at the same time and called at the same rate. */
const ROWS = ['none', 'static', 'last-good', 'breaker', 'short-age'] as const;
type Row = (typeof ROWS)[number];

const TITLES: Record<Row, string> = {
  none: 'no degradation, the caller waits its own 500 ms',
  static: 'attempt timeout 200 ms · static answer',
  'last-good': 'attempt timeout 200 ms · last-good',
  breaker: 'breaker · last-good',
  'short-age': 'breaker · last-good of at most 1 s · static answer',
};

export const outagePolicies = [
  policy('none', 'timeout: { total: 10s }'),
  policy('static', 'timeout: { attempt: 200ms, total: 2s }', 'fallback:', staticLine),
  policy(
    'last-good',
    'timeout: { attempt: 200ms, total: 2s }',
    'fallback:',
    '  - lastGood: { maxAge: 120s }',
    staticLine,
  ),
  policy(
    'breaker',
    'timeout: { attempt: 200ms, total: 2s }',
    breakerLine('1s'),
    'fallback:',
    '  - lastGood: { maxAge: 120s }',
    staticLine,
  ),
  policy(
    'short-age',
    'timeout: { attempt: 200ms, total: 2s }',
    breakerLine('1s'),
    'fallback:',
    '  - lastGood: { maxAge: 1s }',
    staticLine,
  ),
];

interface Measures {
  /** Percent answered from memory before anything is wrong, because another call was refreshing the answer. */
  readonly before: number;
  readonly errors: number;
  readonly degraded: number;
  readonly p50: number;
  readonly p99: number;
  readonly meanAgeS: number;
  /** Percent degraded of the calls within the time after the recovery. */
  readonly after: number;
  /** Calls that reached the dependency while it was down. */
  readonly wasted: number;
}

interface Asked {
  readonly reference?: string;
  readonly reach?: Reach;
  readonly exact?: boolean;
}

const atMost = (figure: number): Reach => ({ kind: 'at-most', figure });
const near = (figure: number, from: number, to: number): Reach => ({ kind: 'near', figure, from, to });
const noErrors: Asked = { reference: '0 %', reach: atMost(0), exact: true };
const likeTimeout: Asked = { reference: '203 ms', reach: near(203, 195, 260) };

/** SCENARIOS S1, live. */
const ASKED: Record<Row, Partial<Record<keyof Measures, Asked>>> = {
  none: {
    errors: { reference: '100 %', reach: near(100, 100, 100), exact: true },
    p50: { reference: '502 ms', reach: near(502, 495, 560) },
  },
  static: { errors: noErrors, p50: likeTimeout },
  'last-good': {
    errors: noErrors,
    p50: likeTimeout,
    meanAgeS: { reference: '1.9 s', reach: near(1.9, 1.2, 2.4) },
  },
  breaker: {
    errors: noErrors,
    p50: { reference: '0 ms', reach: atMost(1) },
    p99: { reference: '204 ms', reach: near(204, 150, 450) },
    // The probe that finds it well comes up to a cooldown and a probe's timeout later.
    after: { reference: '23 %', reach: atMost(45) },
  },
  // Answers near their greatest age are refreshed by one call at a time: that must disturb nobody.
  'short-age': {
    before: { reach: atMost(0) },
    errors: noErrors,
    p50: { reference: '0 ms', reach: atMost(1) },
  },
};

const MEASURES: Record<keyof Measures, { readonly title: string; readonly unit: string }> = {
  before: { title: 'put off by a refresh while all is well', unit: '%' },
  errors: { title: 'errors', unit: '%' },
  degraded: { title: 'degraded', unit: '%' },
  p50: { title: 'p50', unit: 'ms' },
  p99: { title: 'p99', unit: 'ms' },
  meanAgeS: { title: 'mean age of the data', unit: 's' },
  after: { title: 'degraded after recovery', unit: '%' },
  wasted: { title: 'calls on the dead dependency', unit: '' },
};

const ONLY_WHERE_ASKED: ReadonlySet<string> = new Set<keyof Measures>(['before', 'after']);

/** One dependency that hangs for a while; the four ways to live with it side by side in the same seconds. */
export async function outage(context: BenchContext, dependency: Dependency, caller: Caller): Promise<void> {
  const downMs = context.quick ? 1_000 : 3_000;
  const rounds: Record<Row, Measures[]> = {
    none: [],
    static: [],
    'last-good': [],
    breaker: [],
    'short-age': [],
  };
  for (let round = 0; round < context.rounds; round += 1) {
    const measures = await oneOutage({ dependency, caller, downMs });
    for (const row of ROWS) rounds[row].push(measures[row]);
  }
  context.section(
    `One dependency hangs for ${downMs / 1_000} s at ${PER_SECOND} requests/s (${ROWS.length} callers at once)`,
  );
  for (const row of ROWS) reportRow(context, row, rounds[row]);
}

function reportRow(context: BenchContext, row: Row, rounds: readonly Measures[]): void {
  for (const [key, { title, unit }] of Object.entries(MEASURES) as [
    keyof Measures,
    { title: string; unit: string },
  ][]) {
    const values = rounds.map((one) => one[key]);
    const asked = ASKED[row][key];
    // Answers that carry no data have no age.
    if (values.some(Number.isNaN) || (ONLY_WHERE_ASKED.has(key) && asked === undefined)) continue;
    context.report({ name: `${TITLES[row]}: ${title}`, unit, rounds: values, ...asked });
  }
}

interface Outage {
  readonly dependency: Dependency;
  readonly caller: Caller;
  readonly downMs: number;
}

async function oneOutage({ dependency, caller, downMs }: Outage): Promise<Record<Row, Measures>> {
  const everywhere = (behaviour: Behaviour) =>
    dependency.behave(Object.fromEntries(ROWS.map((row) => [row, behaviour])));
  const phase = async (forMs: number) =>
    Promise.all(
      ROWS.map((row, place) =>
        openLoop({
          perSecond: PER_SECOND,
          forMs,
          offsetMs: (place * 1_000) / PER_SECOND / ROWS.length,
          call: () => caller.get(row, row === 'none' ? PATIENCE_MS : undefined),
        }),
      ),
    );
  const callsSoFar = () => Promise.all(ROWS.map(async (row) => (await dependency.log(row)).calls));
  await everywhere(WELL);
  const well = await phase(1_000);
  await Promise.all(well.flat());
  const before = await callsSoFar();
  await everywhere(HANG);
  const during = await phase(downMs);
  const reached = await callsSoFar();
  await everywhere(WELL);
  const after = await phase(downMs);
  const measures = ROWS.map(async (row, place): Promise<[Row, Measures]> => {
    const calls = {
      well: await Promise.all(well[place]!),
      during: await Promise.all(during[place]!),
      after: await Promise.all(after[place]!),
    };
    return [row, { ...measure(calls), wasted: (reached[place] ?? 0) - (before[place] ?? 0) }];
  });
  return Object.fromEntries(await Promise.all(measures)) as Record<Row, Measures>;
}

type Phases = Readonly<Record<'well' | 'during' | 'after', readonly Ended[]>>;

function measure({ well, during, after }: Phases): Omit<Measures, 'wasted'> {
  const ages = during.flatMap((call) => call.ageMs ?? []);
  return {
    before: percentOf(well, (call) => call.reason === 'refreshing'),
    errors: percentOf(during, failed),
    degraded: percentOf(during, degraded),
    p50: latencyMs(during, 0.5),
    p99: latencyMs(during, 0.99),
    meanAgeS: ages.reduce((sum, age) => sum + age, 0) / ages.length / 1_000,
    after: percentOf(after, degraded),
  };
}
