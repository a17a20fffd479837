import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TraceJoin, type InboundEntry } from './trace-join.js';

const trace = (traceId: string, parentId = 'p') => ({ traceId, parentId });
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
    expect(join.totals()).toEqual({ parent: 1, trace: 0, none: 1, overflow: 0 });
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
    const join = new TraceJoin({ calls: 3, callsOfOneTrace: 2 });
    const entries = ['a', 'a', 'a', 'b', 'c'].map((id) => join.enter(trace(id), { endsAtMs: 1, attempt: 1 }));
    expect([join.size, join.totals().overflow]).toEqual([3, 2]);
    expect(join.find(trace('c'))).toBeUndefined();
    entries.forEach((entry) => join.leave(entry));
    expect([join.size, join.traces]).toEqual([0, 0]);
    join.enter(trace('c'), { endsAtMs: 1, attempt: 1 });
    expect(join.find(trace('c'))).toBeDefined();
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
        attempt: fc.integer({ min: 1, max: 4 }),
      }),
      fc.record({ kind: fc.constant('leave' as const), which: fc.nat(20), twice: fc.boolean() }),
      fc.record({ kind: fc.constant('find' as const), id, parent, exhausted: fc.boolean() }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const limits = { calls: 8, callsOfOneTrace: 4 };
        const join = new TraceJoin(limits);
        const all: { entry: InboundEntry; entered: boolean; over: boolean; exhausted: boolean }[] = [];
        const inFlight = () => all.filter(({ entered, over }) => entered && !over);
        const ofTrace = (traceId: string) =>
          inFlight().filter(({ entry }) => entry.trace.traceId === traceId);
        for (const step of steps) {
          if (step.kind === 'enter') {
            const entered =
              inFlight().length < limits.calls && ofTrace(step.id).length < limits.callsOfOneTrace;
            const entry = join.enter(trace(step.id, step.parent), step);
            all.push({ entry, entered, over: false, exhausted: false });
          } else if (step.kind === 'leave') {
            const known = all[step.which];
            if (known === undefined) continue;
            join.leave(known.entry);
            if (step.twice) join.leave(known.entry);
            known.over = true;
          } else {
            const exact = ofTrace(step.id).filter(({ entry }) => entry.trace.parentId === step.parent);
            const wanted = exact.length > 0 ? exact : ofTrace(step.id);
            const found = join.find(trace(step.id, step.parent));
            expect(found !== undefined).toBe(wanted.length > 0);
            if (found === undefined) continue;
            expect(found.by).toBe(exact.length > 0 ? 'parent' : 'trace');
            expect(found.endsAtMs).toBe(Math.max(...wanted.map(({ entry }) => entry.endsAtMs)));
            expect(found.attempt).toBe(Math.max(...wanted.map(({ entry }) => entry.attempt)));
            found.tell(told(step.exhausted));
            for (const one of wanted) one.exhausted ||= step.exhausted;
          }
          expect(join.size).toBe(inFlight().length);
          expect(join.traces).toBe(new Set(inFlight().map(({ entry }) => entry.trace.traceId)).size);
        }
        for (const { entry, exhausted } of all) expect(entry.told.exhausted).toBe(exhausted);
        all.forEach(({ entry }) => join.leave(entry));
        expect([join.size, join.traces]).toEqual([0, 0]);
      }),
      { numRuns: 10_000 },
    );
  });
});
