import * as grpc from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import { agentOf, cleanUp } from './agent-fixture.js';
import { RejectedError } from './index.js';

afterEach(async () => {
  expect(await cleanUp()).toEqual([]);
});

/** One policy, for a dependency of the same name. */
const bootstrap = [
  {
    apiVersion: 'bulwark.dev/v1',
    kind: 'ResiliencePolicy',
    metadata: { name: 'guarded' },
    spec: { target: { service: 'guarded' }, timeout: { total: '1s' } },
  },
];

describe.each([
  ['guarded', 'shop/guarded@0'],
  ['unguarded', ''],
])('a call to a dependency that is %s, with nothing left of its deadline', (service, policy) => {
  it.each([0, -5])('is refused for its deadline and not called late: %i ms', async (deadlineMs) => {
    const bulwark = await agentOf('127.0.0.1:1', { bootstrap });
    let attempts = 0;
    const end = bulwark.call(service, { deadlineMs }, () => Promise.resolve((attempts += 1)));
    await expect(end).rejects.toBeInstanceOf(RejectedError);
    await expect(end).rejects.toMatchObject({ reason: 'deadline', policy, attempts: 0 });
    const by = policy === '' ? '' : ` by ${policy}`;
    const message = `call to ${service} rejected${by}, deadline: nothing is left of the deadline`;
    await expect(end).rejects.toThrow(message);
    expect(attempts).toBe(0);
  });

  it('is answered 504 by fetch, with the reason', async () => {
    const bulwark = await agentOf('127.0.0.1:1', { bootstrap });
    const answer = await bulwark.fetch(`http://${service}.invalid/`, {
      bulwark: { service, deadlineMs: 0 },
    });
    expect([answer.status, answer.headers.get('bulwark-rejected')]).toEqual([504, 'deadline']);
    expect(await answer.json()).toEqual({
      type: 'urn:bulwark:problem:deadline',
      title: 'No time was left for the call',
      status: 504,
      detail: 'nothing is left of the deadline',
      service,
      reason: 'deadline',
      ...(policy !== '' && { policy }),
    });
  });

  it('is DEADLINE_EXCEEDED in gRPC, with the reason', async () => {
    const bulwark = await agentOf('127.0.0.1:1', { bootstrap });
    const client = new grpc.Client('127.0.0.1:1', grpc.credentials.createInsecure());
    const text = (value: string) => Buffer.from(value);
    const status = await bulwark.answering(
      (name) => (name === 'bulwark-deadline' ? '0' : undefined),
      () =>
        new Promise<grpc.ServiceError | null>((resolve) => {
          const interceptors = [bulwark.grpc({ service })];
          const call = { interceptors };
          client.makeUnaryRequest('/a.B/C', text, String, '', new grpc.Metadata(), call, resolve);
        }),
    );
    client.close();
    expect(status).toMatchObject({ code: grpc.status.DEADLINE_EXCEEDED });
    expect(status?.metadata.get('bulwark-rejected')).toEqual(['deadline']);
  });
});
