import { silentLogger, type AgentState } from '@bulwark/agent';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { AcceptedWork } from './accepted-work.js';
import { SidecarMetrics } from './sidecar-metrics.js';
import { StrippedMarks } from './stripped-marks.js';

describe('the metrics of the sidecar', () => {
  it('are of one moment, and make the state once a scrape and anew for the next', async () => {
    let asked = 0;
    const state = (): AgentState => {
      asked += 1;
      return {
        ...{ id: 'a', incarnation: 'i', readiness: { ready: true, reason: '' }, bypass: undefined },
        ...{ version: undefined, keptAtUnixMs: undefined, diskProblem: undefined, refused: {} },
        controlPlane: {
          ...{ state: 'connected', address: '', replica: undefined, lastError: undefined, connections: 1 },
          silentMs: asked * 1_000,
        },
        policies: [],
      };
    };
    const stripped = new StrippedMarks(silentLogger as never);
    const metrics = new SidecarMetrics({ state, outbound: new AcceptedWork(), inbound: undefined, stripped });
    expect(await metrics.registry.metrics()).toContain('bulwark_config_age_seconds 1\n');
    expect(asked).toBe(1);
    await nextTurn();
    const second = await metrics.registry.metrics();
    expect(second).toContain('bulwark_config_age_seconds 2\n');
    expect(second).not.toContain('bulwark_inbound');
    expect(asked).toBe(2);
  });
});
