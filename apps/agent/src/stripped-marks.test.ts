import { silentLogger } from '@bulwark/agent';
import { describe, expect, it } from 'vitest';
import { StrippedMarks } from './stripped-marks.js';

describe('marks that are not believed', () => {
  it('are counted by side, and told of once in ten minutes for each', () => {
    let nowMs = 0;
    const told: object[] = [];
    const logger = { ...silentLogger, warn: (fields: object) => void told.push(fields) };
    const stripped = new StrippedMarks({ ...logger, child: () => logger } as never, () => nowMs);
    for (let count = 0; count < 3; count += 1) stripped.note('inbound', '192.0.2.1');
    stripped.note('outbound', undefined);
    nowMs = 599_999;
    stripped.note('inbound', '192.0.2.2');
    nowMs = 600_000;
    stripped.note('inbound', '192.0.2.3');
    expect(stripped.counts()).toEqual({ inbound: 5, outbound: 1 });
    expect(told).toEqual([
      { side: 'inbound', peer: '192.0.2.1', total: 1 },
      { side: 'outbound', peer: 'unknown', total: 1 },
      { side: 'inbound', peer: '192.0.2.3', total: 5 },
    ]);
  });
});
