import { Bulwark } from '@bulwark/agent';
import { BulwarkModule, Guarded } from '@bulwark/agent/nest';
import { Controller, Get, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import 'reflect-metadata';
import { startDependency, type Say } from '../example.js';

const policy = (service: string, spec: object) => ({
  apiVersion: 'bulwark.dev/v1',
  kind: 'ResiliencePolicy',
  metadata: { name: service },
  spec: { target: { service }, timeout: { attempt: '500ms', total: '2s' }, ...spec },
});

const policies = [
  policy('recommendations', { fallback: [{ static: { status: 200, body: '[]' } }] }),
  policy('fraud', {
    contract: 'required',
    circuitBreaker: {
      scope: 'Instance',
      trip: { consecutiveFailures: 1 },
      cooldown: { initial: '30s', max: '30s', factor: 1 },
      recovery: { steps: [] },
    },
  }),
];

const shop = { recommendations: '', fraudIsDown: false };

@Injectable()
class Fraud {
  /** Each run of this method is one attempt of a guarded call. */
  @Guarded('fraud', { operation: 'check' })
  check(order: string): Promise<string> {
    if (shop.fraudIsDown) return Promise.reject(new Error('the fraud database is away'));
    return Promise.resolve(`order ${order} is fine`);
  }
}

@Controller()
class Orders {
  constructor(
    private readonly bulwark: Bulwark,
    private readonly fraud: Fraud,
  ) {}

  @Get('page')
  async page(): Promise<string> {
    const service = { bulwark: { service: 'recommendations' } };
    const answer = await this.bulwark.fetch(shop.recommendations, service);
    return `page with ${await answer.text()}`;
  }

  @Get('order')
  order(): Promise<string> {
    return this.fraud.check('7');
  }
}

@Module({
  imports: [BulwarkModule.forRoot({ service: 'storefront', bootstrap: policies })],
  controllers: [Orders],
  providers: [Fraud],
})
class App {}

export async function run(say: Say): Promise<void> {
  const marks: string[] = [];
  let failing = false;
  const dependency = await startDependency((request, response) => {
    marks.push(
      `deadline ${Number(request.headers['bulwark-deadline']) <= 300 ? 'of the caller' : 'of the policy'}`,
    );
    response.writeHead(failing ? 503 : 200).end('["book"]');
  });
  shop.recommendations = dependency.url;
  const app = await NestFactory.create<NestFastifyApplication>(App, new FastifyAdapter(), { logger: false });
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  const ask = async (path: string, headers: Record<string, string> = {}): Promise<string> => {
    const answer = await fetch(`${url}${path}`, { headers });
    const told = ['bulwark-rejected', 'bulwark-degraded'].map((name) => answer.headers.get(name));
    const mark = told.find((value) => value !== null);
    const text = answer.status === 200 ? ` "${await answer.text()}"` : '';
    return `${answer.status}${text}${mark === undefined ? '' : `, ${mark}`}`;
  };

  say(`all is well: ${await ask('/page')}`);
  await ask('/page', { 'bulwark-deadline': '300' });
  say(`the two calls below were made with the ${marks.join(' and the ')}`);
  failing = true;
  say(`the part below is down, the page says so: ${await ask('/page')}`);
  say(`a guarded method: ${await ask('/order')}`);
  shop.fraudIsDown = true;
  say(`it fails as it fails: ${await ask('/order')}`);
  say(`and then its breaker is open: ${await ask('/order')}`);

  await app.close();
  await dependency.close();
}
