import { describe, expect, it } from 'vitest';
import { makeTrace, readTraceparent, traceOf } from './traceparent.js';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const parentId = 'b7ad6b7169203331';

describe('traceparent', () => {
  it('is read in the form of version 00, and of later versions that say more', () => {
    const read = { traceId, parentId };
    expect(readTraceparent(`00-${traceId}-${parentId}-01`)).toEqual(read);
    expect(readTraceparent(`cc-${traceId}-${parentId}-01`)).toEqual(read);
    expect(readTraceparent(`cc-${traceId}-${parentId}-01-what-comes-later`)).toEqual(read);
  });

  it('is not believed in any other form', () => {
    const broken = [
      undefined,
      '',
      `00-${traceId}-${parentId}`,
      `00-${traceId}-${parentId}-01-more`,
      `00-${traceId}-${parentId}-01 `,
      `cc-${traceId}-${parentId}-01.more`,
      `ff-${traceId}-${parentId}-01`,
      `00-${'0'.repeat(32)}-${parentId}-01`,
      `00-${traceId}-${'0'.repeat(16)}-01`,
      `00-${traceId.toUpperCase()}-${parentId}-01`,
      `00-${traceId.slice(1)}-${parentId}-01`,
      `00-${traceId}-${parentId}-01, 00-${traceId}-${parentId}-01`,
    ];
    for (const header of broken) expect(readTraceparent(header), header).toBeUndefined();
  });

  it('is made where there is none: valid, not sampled, never the same twice', () => {
    const made = Array.from({ length: 1_000 }, makeTrace);
    for (const { made: header, ...trace } of made) {
      expect(readTraceparent(header)).toEqual(trace);
      expect(header).toMatch(/^00-.*-00$/);
    }
    expect(new Set(made.map((trace) => trace.traceId)).size).toBe(1_000);
    expect(new Set(made.map((trace) => trace.parentId)).size).toBe(1_000);
  });

  it('of a call is its caller’s where it is valid, else a new one', () => {
    expect(traceOf(`00-${traceId}-${parentId}-01`)).toEqual({ traceId, parentId, made: undefined });
    for (const header of [undefined, 'junk', [`00-${traceId}-${parentId}-01`]]) {
      const { made, ...trace } = traceOf(header);
      expect(readTraceparent(made)).toEqual(trace);
    }
  });
});
