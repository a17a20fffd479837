import { eventually, temporaryDirectory } from '@bulwark/testing';
import { expect, it } from 'vitest';
import { quietDecider } from '../fleet/quiet-decider.js';
import { ApiClient } from '../in-process/api-client.js';
import { startInProcess } from '../in-process/replica.js';

it('refuses more watches than it may serve, says when to come again, and takes one when there is room', async () => {
  const directory = temporaryDirectory('watches');
  const args = ['--max-watches', '2'];
  const replica = await startInProcess({
    store: `file:${directory.path}`,
    createDecider: quietDecider,
    args,
  });
  const end = new AbortController();
  try {
    const api = new ApiClient(replica.http);
    await eventually(async () => (await api.call('GET', '/readyz')).code === 200);
    const path = '/apis/bulwark.dev/v1/breakers?watch=true';
    const open = (signal: AbortSignal) => fetch(`http://${replica.http}${path}`, { signal });
    const first = new AbortController();
    await Promise.all([open(first.signal), open(end.signal)]);
    const { code, body, headers } = await api.call<{ reason: string; message: string }>('GET', path);
    expect([code, body.reason, headers.get('Retry-After')]).toEqual([429, 'TooManyRequests', '1']);
    expect(body.message).toContain('--max-watches');
    first.abort();
    await eventually(() => replica.parts.api.openWatches === 1);
    expect((await open(end.signal)).status).toBe(200);
  } finally {
    end.abort();
    await replica.stop();
    directory.remove();
  }
});
