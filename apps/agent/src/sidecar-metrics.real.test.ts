import { afterEach, expect, it } from 'vitest';
import { admin, cleanUp, sidecar, upstream, via } from './sidecar-fixture.js';

afterEach(cleanUp);

it('the limit in force of a bulkhead is a metric, and there is none where there is no bulkhead', async () => {
  const url = await upstream((_request, response) => response.end('ok'));
  const timeout = { total: '5s' };
  const policies = [
    { target: { service: 'fixed' }, timeout, bulkhead: { maxConcurrent: 7 } },
    { target: { service: 'adaptive' }, timeout, bulkhead: { maxConcurrent: 100, adaptive: 'gradient' } },
    { target: { service: 'free' }, timeout },
  ];
  const upstreams = { fixed: url, adaptive: url, free: url };
  const running = await sidecar(policies, upstreams);
  for (const service of Object.keys(upstreams)) await via(running.listen, `http://${service}/`);
  const { body } = await admin(running.admin, '/metrics');
  expect(body).toContain('bulwark_bulkhead_limit{policy="default/fixed"} 7\n');
  const adaptive = /^bulwark_bulkhead_limit\{policy="default\/adaptive"\} (\d+)$/m.exec(body)?.[1];
  expect(Number(adaptive)).toBeGreaterThan(0);
  expect(Number(adaptive)).toBeLessThan(100);
  expect(body).toContain('bulwark_bulkhead_usage{policy="default/free"} 0\n');
  expect(body).not.toContain('bulwark_bulkhead_limit{policy="default/free"}');
});
