import {
  type Attempt,
  type CallRequest,
  type CallResult,
  Guard,
  type GuardSettings,
  type ValueAdapter,
} from '@bulwark/resilience';
import { FakeHost } from './fake-host.js';
import { agree } from './model-check.js';
import { seededRandom } from './seeded-random.js';

/** How an attempt ends: by itself at once, when a command says so, or never. */
type AtOnce = 'waits' | 'answers' | 'throws';
export type GuardWorldAnswer = 'ok' | 'no' | 'unavailable' | 'reset' | 'nobody-knows';

/** Operations are breaker keys of one guard: they share its bulkhead, budget and timer. */
export const WORLD_KEYS = ['GET /a', 'GET /b'] as const;

export interface GuardCall {
  readonly operation: (typeof WORLD_KEYS)[number];
  readonly method: 'GET' | 'POST';
  readonly deadlineMs: number | undefined;
  readonly callerAttempt: number;
  readonly cached: boolean;
  /** No signal: most calls have none, and go a shorter way through the engine. */
  readonly leaving: 'never' | 'may' | 'before';
  readonly atOnce: AtOnce;
  /** It asks for a value and not for a result: another way through the engine. */
  readonly wantsValue: boolean;
}

export interface GuardWorldRun {
  readonly seed: number;
  /** Listeners throw. */
  readonly throwing: boolean;
  /** The host has a ticker. Times are ten times as long then, so that ticks are short beside them. */
  readonly ticks: boolean;
}

interface Call {
  readonly id: number;
  readonly plan: GuardCall;
  readonly settings: GuardSettings;
  readonly endMs: number;
  readonly abort: AbortController;
  /** Another call, which may refresh the remembered answer, was under way when this one began. */
  readonly beside: boolean;
  /** It began during a drill. */
  readonly drilled: boolean;
  launches: number;
  simplified: boolean;
  result: CallResult<GuardWorldAnswer> | undefined;
}

interface Open {
  readonly attempt: Attempt;
  readonly operation: string;
  readonly main: boolean;
  /** Its policy only watches: it is over when it was answered, not before. */
  readonly shadow: boolean;
  answered: boolean;
  answer(how: GuardWorldAnswer): void;
}

/** What a call that wanted a value ends with when there is no fresh one. */
class Concluded extends Error {
  constructor(readonly result: CallResult<GuardWorldAnswer>) {
    super(result.kind);
  }
}

const adapter: ValueAdapter<GuardWorldAnswer> = {
  conclude(result) {
    throw new Concluded(result);
  },
  judge(answer) {
    if (answer === 'nobody-knows') throw new Error('a judge that fails');
    return { httpStatus: answer === 'ok' ? 200 : answer === 'no' ? 404 : 503 };
  },
  judgeError: () => ({ transport: 'reset' }),
};

/** A call that reaches the dependency when any does, and is answered well. */
const RECOVERING: Omit<GuardCall, 'operation'> = {
  method: 'POST',
  deadlineMs: undefined,
  callerAttempt: 1,
  cached: false,
  leaving: 'never',
  atOnce: 'answers',
  wantsValue: false,
};

/** A guard, a dependency that does as it is told, and what must hold whatever happens. */
export class GuardWorld {
  readonly host: FakeHost;
  readonly calls: Call[] = [];
  private open: Open[] = [];
  private readonly guard: Guard;
  private lastFirst = 0;
  private launched = 0;
  private epoch = 0;
  private drillUntilMs = 0;
  private broken: string | undefined;
  /** All generations so far had a breaker, and enforced. */
  private guarded: boolean;
  /** What a call may take beyond its time: the ticks at both of its ends. */
  private readonly slackMs: number;
  private readonly scale: number;

  constructor(
    private settings: GuardSettings,
    { seed, throwing, ticks }: GuardWorldRun,
  ) {
    this.guarded = guards(settings);
    this.host = new FakeHost({ random: seededRandom(seed), ticks });
    this.slackMs = ticks ? 20 : 0;
    this.scale = ticks ? 10 : 1;
    const complain = (): void => {
      if (throwing) throw new Error('a listener that fails');
    };
    this.guard = new Guard({
      host: this.host,
      settings,
      keyOf: ({ operation }) => operation,
      onEvent: complain,
      onChange: complain,
    });
  }

  call(plan: GuardCall): void {
    const { settings } = this;
    const nowMs = this.host.nowMs();
    const call: Call = {
      id: this.calls.length + 1,
      plan,
      settings,
      endMs: nowMs + Math.min(plan.deadlineMs ?? Infinity, settings.timeout.totalMs),
      abort: new AbortController(),
      beside: this.calls.some(
        ({ plan: other, result }) =>
          result === undefined && other.cached && other.operation === plan.operation,
      ),
      drilled: nowMs < this.drillUntilMs,
      launches: 0,
      simplified: false,
      result: undefined,
    };
    this.calls.push(call);
    if (plan.leaving === 'before') call.abort.abort();
    const { operation, method, deadlineMs, callerAttempt, cached } = plan;
    const request: CallRequest = {
      operation,
      method,
      callerAttempt,
      ...(plan.leaving !== 'never' && { signal: call.abort.signal }),
      ...(deadlineMs !== undefined && { deadlineMs }),
      ...(cached && { cacheKey: operation }),
    };
    const run = (attempt: Attempt) => this.launch(call, attempt, operation);
    const ways: ValueAdapter<GuardWorldAnswer> = {
      ...adapter,
      simplified: (simple, _request, attempt) => this.launch(call, attempt, simple),
    };
    const result = plan.wantsValue
      ? this.guard.run(request, run, ways).then(
          (value) => ({ kind: 'fresh' as const, value, attempts: call.launches, policy: undefined }),
          (error: unknown) => {
            if (error instanceof Concluded) return error.result;
            throw error;
          },
        )
      : this.guard.call(request, run, ways);
    void result.then((end) => this.settled(call, end));
  }

  private settled(call: Call, result: CallResult<GuardWorldAnswer>): void {
    if (call.result !== undefined) this.broken ??= `call ${call.id} settled twice`;
    call.result = result;
    if (result.kind !== 'degraded' || result.reason !== 'refreshing' || call.beside) return;
    this.broken ??= `call ${call.id} was told that another refreshes, and there is none`;
  }

  answer(pick: number, how: GuardWorldAnswer): void {
    this.forget();
    this.open[pick % Math.max(1, this.open.length)]?.answer(how);
  }

  abort(pick: number): void {
    const waiting = this.calls.filter(({ plan, result }) => result === undefined && plan.leaving === 'may');
    waiting[pick % Math.max(1, waiting.length)]?.abort.abort();
  }

  update(settings: GuardSettings): void {
    this.settings = { ...settings, generation: this.settings.generation + 1 };
    this.guarded &&= guards(settings);
    this.guard.update(this.settings);
  }

  verdict(state: 'open' | 'half-open' | 'recovering' | 'closed'): void {
    this.epoch += 1;
    this.guard.applyVerdict(WORLD_KEYS[0], {
      version: { era: 1, token: 1, epoch: this.epoch },
      state,
      share: 0.5,
      permitCalls: 1,
      permitMs: 80 * this.scale,
      ttlMs: 300 * this.scale,
      forced: undefined,
      forcedMs: 0,
      reason: '',
      cooldownMs: 0,
    });
  }

  drill(ms: number): void {
    this.drillUntilMs = this.host.nowMs() + ms;
    this.guard.drill(ms);
  }

  /** After every command, when nothing more can happen without time. */
  check(): void {
    this.forget();
    if (this.broken !== undefined) throw new Error(this.broken);
    const totals = this.guard.read();
    const inFlight = this.open.filter(({ main }) => main).length;
    agree(totals.calls, this.calls.length, 'calls');
    agree(totals.attempts, this.launched, 'attempts counted and made');
    agree(totals.inFlight, inFlight, 'in flight');
    const limit = totals.limit ?? Infinity;
    agree(totals.waiting > 0 && inFlight < limit, false, 'someone waits beside a free slot');
    agree(limit >= 1 && limit <= this.limit(), true, 'a limit within its bounds');
    if (this.settings.bulkhead?.adaptive === undefined) agree(limit, this.limit(), 'limit');
    const nowMs = this.host.nowMs();
    for (const call of this.calls) {
      const late =
        call.result === undefined && nowMs > call.endMs + this.slackMs && call.settings.mode === 'enforce';
      agree(late, false, `call ${call.id} runs past its deadline`);
    }
    if (this.epoch === 0 && this.guarded) this.checkProbes(totals.waiting, nowMs);
  }

  /** This process's own probes: one at a time for a key, and the next one at once when it is over or never was. */
  private checkProbes(waiting: number, nowMs: number): void {
    for (const gate of this.guard.gates()) {
      const probes = this.open.filter(
        ({ attempt, operation }) => attempt.probe && operation === gate.key,
      ).length;
      agree(probes > 1, false, `${probes} probes of ${gate.key} at once`);
      if (gate.localState(nowMs) !== 'half-open' || probes > 0 || waiting > 0) continue;
      agree(gate.wouldRefuse(nowMs), false, 'half-open without a probe, and none is admitted');
    }
  }

  /** Everything ends; then nothing is held, and the dependency can be reached again. */
  async end(): Promise<void> {
    this.drill(0);
    const running = (): boolean => this.calls.some(({ result }) => result === undefined);
    for (let round = 0; round < 100 && (this.open.length > 0 || running()); round += 1) {
      for (const open of this.open) open.answer('ok');
      await this.host.advance(250 * this.scale);
      this.check();
    }
    // Remembered answers are old enough for a refresh now, and nobody makes one.
    for (const operation of WORLD_KEYS) this.call({ ...RECOVERING, operation, cached: true });
    await this.host.advance(500 * this.scale);
    this.check();
    await this.host.advance(60_000);
    this.check();
    const totals = this.guard.read();
    agree(totals.inFlight + totals.waiting, 0, 'in flight and waiting at the end');
    agree(this.host.pending, 0, 'timers of the host at the end');
    const ended = this.calls.map(({ result }) => result);
    const of = (kind: string): number => ended.filter((result) => result?.kind === kind).length;
    agree(ended.includes(undefined), false, 'a call never settled');
    agree(of('fresh'), totals.fresh, 'fresh');
    agree(
      of('degraded'),
      Object.values(totals.degraded).reduce((sum, one) => sum + one),
      'degraded',
    );
    agree(of('failed'), totals.failed + totals.cancelled, 'failed and cancelled');
    for (const { id, result, launches } of this.calls) agree(result?.attempts, launches, `attempts of ${id}`);
    for (const key of WORLD_KEYS) await this.recover(key);
  }

  /** Within a few calls one reaches the dependency, and with its successes the breaker closes. */
  private async recover(operation: (typeof WORLD_KEYS)[number]): Promise<void> {
    const before = this.launched;
    const state = (): string => this.guard.gate(operation)?.stateAt(this.host.nowMs()).state ?? 'closed';
    for (let call = 0; call < 4 || (call < 40 && state() !== 'closed'); call += 1) {
      this.call({ ...RECOVERING, operation });
      await this.host.advance(200 * this.scale);
      if (call === 3) agree(this.launched > before, true, 'a probe is possible');
    }
    this.check();
    agree(state(), 'closed', 'the breaker at last');
  }

  /** The most that may ever be in flight now; an adaptive limit is less. */
  private limit(): number {
    const { mode, bulkhead } = this.settings;
    return mode === 'shadow' ? Infinity : (bulkhead?.maxConcurrent ?? Infinity);
  }

  private launch(call: Call, attempt: Attempt, operation: string): Promise<GuardWorldAnswer> {
    const main = operation === call.plan.operation;
    if (main) this.launchMain(call, attempt);
    else call.simplified = true;
    if (call.plan.atOnce === 'throws') throw new Error('thrown at once');
    if (call.plan.atOnce === 'answers') return Promise.resolve('ok');
    return new Promise((resolve, reject) => {
      const open: Open = {
        attempt,
        operation,
        main,
        shadow: call.settings.mode === 'shadow',
        answered: false,
        answer(how) {
          open.answered = true;
          if (how === 'reset') reject(new Error('reset'));
          else resolve(how);
        },
      };
      this.open.push(open);
    });
  }

  private launchMain(call: Call, attempt: Attempt): void {
    const nowMs = this.host.nowMs();
    this.launched += 1;
    call.launches += 1;
    if (call.result !== undefined) this.broken ??= `an attempt of call ${call.id} after its end`;
    // A policy that only watches lets everything through, as if there were no guard.
    if (call.settings.mode === 'shadow') return;
    if (call.plan.leaving === 'before')
      this.broken ??= `an attempt of call ${call.id}, which was aborted before`;
    const state = this.guard.gate(call.plan.operation)?.stateAt(nowMs).state;
    if (this.guarded && state === 'open') this.broken ??= `an attempt of call ${call.id} while open`;
    this.forget();
    const inside = this.open.filter(({ main }) => main).length + 1;
    if (inside > this.limit()) this.broken ??= `${inside} in flight, limit ${this.limit()}`;
    if (call.drilled) this.broken ??= `an attempt of call ${call.id}, which began in a drill`;
    if (nowMs >= call.endMs + this.slackMs) this.broken ??= `an attempt of call ${call.id} past its deadline`;
    if (attempt.timeoutMs > call.endMs - nowMs + 1e-6 + this.slackMs)
      this.broken ??= `more time than call ${call.id} has`;
    const { retry } = call.settings;
    const may = call.plan.method === 'GET' && call.plan.callerAttempt === 1 ? (retry?.maxAttempts ?? 1) : 1;
    if (call.launches > may) this.broken ??= `attempt ${call.launches} of ${may} of call ${call.id}`;
    if (call.launches > 1 || call.simplified) return;
    // Whoever tried a simplified answer first joined the queue later.
    if (call.id < this.lastFirst) this.broken ??= `call ${call.id} was overtaken by ${this.lastFirst}`;
    this.lastFirst = call.id;
  }

  private forget(): void {
    this.open = this.open.filter(
      ({ answered, attempt, shadow }) => !answered && (shadow || !attempt.signal.aborted),
    );
  }
}

function guards(settings: GuardSettings): boolean {
  return settings.breaker !== undefined && settings.mode === 'enforce';
}
