import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TraceJoin, type InboundEntry } from './trace-join.js';

const trace = (traceId: string, parentId = 'p') => ({ traceId, parentId });
const limits = { calls: 8, callsOfOneTrace: 4, abandoned: 3, abandonedOfOneTrace: 2, rememberMs: 100 };
const told = (exhausted: boolean, degraded?: string) => ({ exhausted, degraded });

describe('the join of inbound and outbound calls', () => {
  it('hands deadline and attempt down, and what became of it up', () => {
    const join = new TraceJoin();
    const entry = join.enter(trace('t'), { endsAtMs: 500, attempt: 2 });
    const found = join.find(trace('t'));
    expect(found).toMatchObject({ by: 'parent', endsAtMs: 500, attempt: 2 });
    found?.tell(told(false, 'static;upstream="a"'));
    found?.tell(told(true));
    expect(entry.told).toEqual(told(true, 'static;upstream="a"'));
    join.leave(entry);
    expect(join.find(trace('t'))).toBeUndefined();
    expect(join.totals()).toEqual({ parent: 1, trace: 0, late: 0, none: 1, overflow: 0 });
  });

  it('takes the parent span first, and the whole trace for a span of the service’s own', () => {
    const join = new TraceJoin();
    const one = join.enter(trace('t', 'one'), { endsAtMs: 100, attempt: 3 });
    const two = join.enter(trace('t', 'two'), { endsAtMs: 200, attempt: 1 });
    join.enter(trace('other', 'two'), { endsAtMs: 900, attempt: 9 });
    expect(join.find(trace('t', 'one'))).toMatchObject({ by: 'parent', endsAtMs: 100, attempt: 3 });
    const own = join.find(trace('t', 'own'));
    expect(own).toMatchObject({ by: 'trace', endsAtMs: 200, attempt: 3 });
    own?.tell(told(true));
    expect([one.told.exhausted, two.told.exhausted]).toEqual([true, true]);
  });

  it('cuts nobody off when one of several inbound calls has no deadline', () => {
    const join = new TraceJoin();
    join.enter(trace('t'), { endsAtMs: 100, attempt: 1 });
    join.enter(trace('t'), { endsAtMs: Infinity, attempt: 1 });
    expect(join.find(trace('t'))?.endsAtMs).toBe(Infinity);
  });

  it('holds no more than its bounds; what is beyond them is counted and passes', () => {
    const join = new TraceJoin({ limits: { ...limits, calls: 3, callsOfOneTrace: 2 } });
    const entries = ['a', 'a', 'a', 'b', 'c'].map((id) => join.enter(trace(id), { endsAtMs: 1, attempt: 1 }));
    expect([join.size, join.totals().overflow]).toEqual([3, 2]);
    expect(join.find(trace('c'))).toBeUndefined();
    entries.forEach((entry) => join.leave(entry));
    expect([join.size, join.traces]).toEqual([0, 0]);
    join.enter(trace('c'), { endsAtMs: 1, attempt: 1 });
    expect(join.find(trace('c'))).toBeDefined();
  });

  it('S4.7: remembers for a while what its caller gave up, since the service may not have noticed', () => {
    let nowMs = 0;
    const join = new TraceJoin({ nowMs: () => nowMs, limits });
    const enter = (id: string, endsAtMs: number, attempt = 1) => join.enter(trace(id), { endsAtMs, attempt });
    join.abandon(enter('t', 50));
    expect([join.size, join.abandoned]).toEqual([0, 1]);
    nowMs = 60;
    expect(join.find(trace('t'))).toMatchObject({ by: 'late', endsAtMs: 50, attempt: 1 });
    expect(join.find(trace('t', 'own'))).toMatchObject({ by: 'late', endsAtMs: 50 });
    const retry = enter('t', 150, 2);
    expect(join.find(trace('t'))).toMatchObject({ by: 'parent', endsAtMs: 150, attempt: 2 });
    expect(join.find(trace('t', 'own'))).toMatchObject({ by: 'trace', endsAtMs: 150 });
    join.leave(retry);
    nowMs = 99;
    expect(join.find(trace('t'))).toBeDefined();
    nowMs = 100;
    expect(join.find(trace('t'))).toBeUndefined();
    expect(join.traces).toBe(0);
    const answered = enter('t', 500);
    join.leave(answered);
    join.abandon(answered);
    const hasNothingToHandDown = enter('t', Infinity);
    join.abandon(hasNothingToHandDown);
    expect([join.size, join.abandoned, join.traces]).toEqual([0, 0, 0]);
  });

  it('is at every moment the list of calls in flight, and nothing is left when the last one leaves', () => {
    const id = fc.constantFrom('t1', 't2', 't3');
    const parent = fc.constantFrom('p1', 'p2');
    const step = fc.oneof(
      fc.record({
        kind: fc.constant('enter' as const),
        id,
        parent,
        endsAtMs: fc.constantFrom(10, 20, 30, Infinity),
        attempt: fc.integer({ min: 1, max: 3 }),
      }),
      fc.record({ kind: fc.constantFrom('leave' as const, 'abandon' as const), which: fc.nat(20) }),
      fc.record({ kind: fc.constant('find' as const), id, parent, exhausted: fc.boolean() }),
      fc.record({ kind: fc.constant('pass' as const), ms: fc.constantFrom(30, 60, 120) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let nowMs = 0;
        const join = new TraceJoin({ nowMs: () => nowMs, limits });
        const model = new NaiveJoin();
        for (const step of steps) {
          if (step.kind === 'pass') nowMs += step.ms;
          else if (step.kind === 'find') {
            const { by, entries } = model.find(step, nowMs);
            const found = join.find(trace(step.id, step.parent));
            expect(found?.by).toBe(by);
            if (found === undefined) continue;
            expect(found.endsAtMs).toBe(Math.max(...entries.map(({ entry }) => entry.endsAtMs)));
            expect(found.attempt).toBe(Math.max(...entries.map(({ entry }) => entry.attempt)));
            found.tell(told(step.exhausted));
            for (const one of entries) one.exhausted ||= step.exhausted;
          } else if (step.kind === 'enter') {
            const state = model.hasRoom(step.id, nowMs) ? 'live' : 'over';
            const entry = join.enter(trace(step.id, step.parent), step);
            model.all.push({ entry, state, untilMs: 0, exhausted: false });
          } else {
            const known = model.all[step.which];
            if (known === undefined) continue;
            join[step.kind](known.entry);
            model[step.kind](known, nowMs);
          }
          expect(join.size).toBe(model.of('live').length);
        }
        for (const { entry, exhausted } of model.all) expect(entry.told.exhausted).toBe(exhausted);
        for (const { entry } of model.all) join.leave(entry);
        nowMs += 1_000;
        expect(join.find(trace('t1'))).toBeUndefined();
        expect([join.size, join.abandoned, join.traces]).toEqual([0, 0, 0]);
      }),
      { numRuns: 10_000 },
    );
  });
});

interface Known {
  readonly entry: InboundEntry;
  state: 'live' | 'abandoned' | 'over';
  untilMs: number;
  exhausted: boolean;
}

/** The same by walking lists: what the table has to be. */
class NaiveJoin {
  readonly all: Known[] = [];
  /** In the order in which they were abandoned. */
  #abandoned: Known[] = [];

  of(state: Known['state'], traceId?: string): Known[] {
    const all = state === 'abandoned' ? this.#abandoned : this.all;
    return all.filter(
      (known) =>
        known.state === state && (traceId ?? known.entry.trace.traceId) === known.entry.trace.traceId,
    );
  }

  hasRoom(traceId: string, nowMs: number): boolean {
    this.#forget(nowMs);
    return this.of('live').length < limits.calls && this.of('live', traceId).length < limits.callsOfOneTrace;
  }

  leave(known: Known): void {
    if (known.state === 'live') known.state = 'over';
  }

  abandon(known: Known, nowMs: number): void {
    if (known.state !== 'live') return;
    const { endsAtMs, attempt, trace: ofTrace } = known.entry;
    if (endsAtMs === Infinity && attempt === 1) return this.leave(known);
    known.state = 'abandoned';
    known.untilMs = nowMs + limits.rememberMs;
    this.#abandoned.push(known);
    const [oldest, ...others] = this.of('abandoned', ofTrace.traceId);
    if (oldest !== undefined && others.length >= limits.abandonedOfOneTrace) oldest.state = 'over';
    this.#forget(nowMs);
  }

  find(wanted: { id: string; parent: string }, nowMs: number) {
    this.#forget(nowMs);
    const [live, abandoned] = [this.of('live', wanted.id), this.of('abandoned', wanted.id)];
    const exact = ({ entry }: Known) => entry.trace.parentId === wanted.parent;
    if (live.some(exact)) return { by: 'parent', entries: live.filter(exact) };
    if (abandoned.some(exact)) return { by: 'late', entries: abandoned.filter(exact) };
    if (live.length > 0) return { by: 'trace', entries: live };
    return abandoned.length > 0 ? { by: 'late', entries: abandoned } : { by: undefined, entries: [] };
  }

  #forget(nowMs: number): void {
    for (const known of this.#abandoned) if (nowMs >= known.untilMs) known.state = 'over';
    this.#abandoned = this.#abandoned.filter(({ state }) => state === 'abandoned');
    while (this.#abandoned.length > limits.abandoned) {
      const oldest = this.#abandoned.shift();
      if (oldest !== undefined) oldest.state = 'over';
    }
  }
}
