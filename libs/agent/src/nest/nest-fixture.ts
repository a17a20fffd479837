/** A Nest application for tests. No test framework in here. */
import { Controller, Get, Inject, Injectable, Module, Res, type DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { AddressInfo } from 'node:net';
import { atEnd } from '../agent-fixture.js';
import { Bulwark, silentLogger } from '../index.js';
import { currentAttempt, Guarded, type BulwarkModuleOptions } from './index.js';

/** What the calls of the test's application meet; set by each test. */
export const dependency = { url: '', seen: [] as Record<string, unknown>[], attempts: [] as unknown[] };

@Injectable()
export class Fraud {
  fail = false;

  @Guarded('fraud-api', (order: string) => ({ method: 'GET', attributes: { order } }))
  check(order: string): Promise<string> {
    const attempt = currentAttempt();
    dependency.attempts.push([this instanceof Fraud, order, attempt?.number]);
    if (this.fail || (order === 'once' && attempt?.number === 1)) {
      return Promise.reject(Object.assign(new Error('down'), { code: 'ECONNRESET' }));
    }
    return Promise.resolve(`${order} is fine`);
  }
}

@Controller()
class Shop {
  constructor(
    @Inject(Bulwark) private readonly bulwark: Bulwark,
    @Inject(Fraud) private readonly fraud: Fraud,
  ) {}

  @Get('orders')
  async orders(): Promise<string> {
    const answer = await this.bulwark.fetch(`${dependency.url}/data`, { bulwark: { service: 'below' } });
    return `orders (${await answer.text()})`;
  }

  @Get('check')
  check(): Promise<string> {
    return this.fraud.check('once');
  }

  @Get('slow')
  slow(): Promise<string> {
    return this.bulwark.call('slow', {}, () => new Promise<string>(() => undefined));
  }

  @Get('relays')
  relays(@Res({ passthrough: true }) reply: { header(name: string, value: string): void }): string {
    reply.header('Bulwark-Degraded', 'static;upstream="elsewhere"');
    return 'relayed';
  }
}

export const document = (name: string, spec: object) => ({
  apiVersion: 'bulwark.dev/v1',
  kind: 'ResiliencePolicy',
  metadata: { name },
  spec: { target: { service: name }, timeout: { total: '3s' }, ...spec },
});
export const options: BulwarkModuleOptions = {
  service: 'shop',
  logger: silentLogger,
  bootstrap: [
    document('below', { fallback: [{ static: { status: 200, body: 'nothing' } }] }),
    document('fraud-api', {
      retry: { maxAttempts: 2, backoff: { base: '1ms', max: '2ms', jitter: 'full' } },
      circuitBreaker: {
        scope: 'Instance',
        trip: { consecutiveFailures: 2 },
        cooldown: { initial: '9s', max: '9s', factor: 1 },
        recovery: { steps: [] },
      },
    }),
    document('slow', { timeout: { total: '100ms' } }),
  ],
};

export async function application(bulwark: DynamicModule) {
  @Module({ imports: [bulwark], controllers: [Shop], providers: [Fraud] })
  class App {}
  const app = await NestFactory.create<NestFastifyApplication>(App, new FastifyAdapter(), {
    logger: false,
    abortOnError: false,
  });
  await app.listen(0, '127.0.0.1');
  atEnd(() => app.close());
  const { port } = app.getHttpServer().address() as AddressInfo;
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, { headers });
  return { app, get, fraud: app.get(Fraud), agent: app.get(Bulwark) };
}
