import { Module } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { cleanUp, upstream } from '../agent-fixture.js';
import { BulwarkModule, currentAttempt, type BulwarkModuleOptions } from './index.js';
import { application, dependency, document, options } from './nest-fixture.js';

afterEach(async () => {
  expect(await cleanUp()).toEqual([]);
});

async function world(more: Partial<BulwarkModuleOptions> = {}, status = 200) {
  dependency.seen = [];
  dependency.attempts = [];
  const { url } = await upstream((request, response) => {
    dependency.seen.push(request.headers);
    response.writeHead(status, status === 200 ? {} : { 'bulwark-retry': 'exhausted' });
    response.end('full');
  });
  dependency.url = url;
  return application(BulwarkModule.forRoot({ ...options, ...more }));
}

describe('a Nest application with BulwarkModule', () => {
  it('hands the deadline and attempt number of each request on to the calls it makes', async () => {
    const { get } = await world();
    const answer = await get('/orders', { 'bulwark-deadline': '900', 'bulwark-attempt': '2' });
    expect([answer.status, await answer.text()]).toEqual([200, 'orders (full)']);
    expect(dependency.seen[0]?.['bulwark-attempt']).toBe('2');
    expect(Number(dependency.seen[0]?.['bulwark-deadline'])).toBeLessThanOrEqual(900);
    await get('/orders');
    expect(dependency.seen[1]?.['bulwark-attempt']).toBeUndefined();
    expect(Number(dependency.seen[1]?.['bulwark-deadline'])).toBeGreaterThan(2_000);
  });

  it('believes only those it was told to believe', async () => {
    const asked: unknown[] = [];
    const { get } = await world({ trusted: (address) => asked.push(address) < 0 });
    await get('/orders', { 'bulwark-deadline': '900', 'bulwark-attempt': '2' });
    expect(asked).toEqual(['127.0.0.1']);
    expect(dependency.seen[0]?.['bulwark-attempt']).toBeUndefined();
    expect(Number(dependency.seen[0]?.['bulwark-deadline'])).toBeGreaterThan(2_000);
  });

  it('says on its answer which level below was degraded, beside what the handler relays', async () => {
    const { get } = await world({}, 503);
    const answer = await get('/orders');
    expect([answer.status, await answer.text()]).toEqual([200, 'orders (nothing)']);
    expect(answer.headers.get('bulwark-degraded')).toMatch(/^static;upstream="below";reason="failure"/);
    const relayed = await get('/relays');
    expect(relayed.headers.get('bulwark-degraded')).toBe('static;upstream="elsewhere"');
    expect((await get('/check')).headers.get('bulwark-degraded')).toBeNull();
  });

  it('runs a guarded method as a call: attempts, its own object, its arguments', async () => {
    const { get } = await world();
    const answer = await get('/check');
    expect([answer.status, await answer.text()]).toEqual([200, 'once is fine']);
    expect(dependency.attempts).toEqual([
      [true, 'once', 1],
      [true, 'once', 2],
    ]);
    expect(currentAttempt()).toBeUndefined();
  });

  it('answers refusals nobody caught as 503 and 504, with the reason in header and body', async () => {
    const { get, fraud } = await world();
    fraud.fail = true;
    expect((await get('/check')).status).toBe(500);
    const rejected = await get('/check');
    expect([rejected.status, rejected.headers.get('bulwark-rejected')]).toEqual([503, 'breaker-open']);
    expect(Number(rejected.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(rejected.headers.get('content-type')).toContain('application/problem+json');
    expect(await rejected.json()).toMatchObject({
      status: 503,
      reason: 'breaker-open',
      service: 'fraud-api',
    });
    const late = await get('/slow');
    expect([late.status, await late.json()]).toEqual([
      504,
      expect.objectContaining({ reason: 'timeout', service: 'slow' }),
    ]);
  });

  it('tells upward that retries are used up', async () => {
    const { get, fraud } = await world();
    fraud.fail = true;
    await get('/check');
    const { headers } = await get('/check');
    expect(headers.get('bulwark-rejected')).toBe('breaker-open');
    const exhausted = await (await world({ bootstrap: [document('below', {})] }, 503)).get('/orders');
    expect(exhausted.headers.get('bulwark-retry')).toBe('exhausted');
  });

  it('connects before it listens and closes the agent after its server, also with options from a factory', async () => {
    const settings = Symbol('settings');
    class Settings {}
    Module({ providers: [{ provide: settings, useValue: 'shop' }], exports: [settings] })(Settings);
    const { app, agent, get } = await application(
      BulwarkModule.forRootAsync({
        imports: [Settings],
        inject: [settings],
        useFactory: (service: string) => Promise.resolve({ ...options, service, instance: 'n-1' }),
      }),
    );
    expect(agent.id).toBe('default/shop/n-1');
    expect(agent.readiness().ready).toBe(true);
    expect((await get('/relays')).status).toBe(200);
    await app.close();
    expect(agent.state().controlPlane.state).toBe('closed');
  });

  it('does not start when its options can never work', async () => {
    const module = BulwarkModule.forRoot({ ...options, bootstrap: [document('Bad Name', {})] });
    await expect(application(module)).rejects.toThrow(/connect: bootstrap documents/);
  });
});
