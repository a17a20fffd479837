import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatGrpcTimeout, parseGrpcTimeout } from './grpc-timeout.js';

describe('grpc-timeout', () => {
  it('is read in each of its units', () => {
    const read = ['1H', '2M', '3S', '4m', '5000u', '6000000n'].map(parseGrpcTimeout);
    expect(read).toEqual([3_600_000, 120_000, 3_000, 4, 5, 6]);
  });

  it('is as if it were not there when it is junk', () => {
    for (const junk of ['', '5', 'm', '-1m', '1.5S', '123456789m', '1s', ' 1m', '1m ']) {
      expect(parseGrpcTimeout(junk), junk).toBeUndefined();
    }
  });

  it('is written in milliseconds, in microseconds below one, in seconds above what eight digits hold', () => {
    const written = [1_500.9, 1, 0.25, 0, -3, 99_999_999, 100_000_000, 1e15].map(formatGrpcTimeout);
    expect(written).toEqual(['1500m', '1m', '250u', '0u', '0u', '99999999m', '100000S', '99999999S']);
  });

  it('never grows on its way, and loses less than a unit', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e11 - 1_000, noNaN: true }), (ms) => {
        const handedOn = parseGrpcTimeout(formatGrpcTimeout(ms)) ?? NaN;
        expect(handedOn).toBeLessThanOrEqual(ms);
        expect(ms - handedOn).toBeLessThan(ms > 99_999_999 ? 1_000 : 1);
      }),
    );
  });
});
