import { request, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { json } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Dependency } from './dependency.js';

let dependency: Dependency;
let port: number;

beforeEach(async () => {
  dependency = new Dependency(['pay']);
  port = await dependency.listen(0);
});
afterEach(() => dependency.close());

async function asked(path: string, method = 'GET'): Promise<{ code: number | undefined; body: unknown }> {
  const call = request({ port, host: '127.0.0.1', path, method }).end();
  const [answer] = (await once(call, 'response')) as [IncomingMessage];
  return { code: answer.statusCode, body: await json(answer) };
}

it('goes on after a path that is none', async () => {
  expect((await asked('//')).code).toBe(400);
  expect((await asked('/svc/pay/')).code).toBe(200);
});

it('breaks and heals on request, and counts its calls', async () => {
  expect((await asked('/break/pay', 'POST')).code).toBe(200);
  expect((await asked('/svc/pay/')).code).toBe(500);
  expect((await asked('/heal/pay', 'POST')).code).toBe(200);
  expect((await asked('/svc/pay/')).code).toBe(200);
  expect((await asked('/status')).body).toEqual({
    services: [{ service: 'pay', health: 'ok', calls: 2 }],
  });
  expect((await asked('/break/pay')).code).toBe(405);
  expect((await asked('/break/nobody', 'POST')).code).toBe(404);
});
