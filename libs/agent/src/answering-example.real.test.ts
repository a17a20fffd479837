import { readFile } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { agentOf, atEnd, cleanUp } from './agent-fixture.js';
import type { Bulwark } from './index.js';

afterEach(async () => {
  expect(await cleanUp()).toEqual([]);
});

/** The documentation's own text; the last test compares them. */
function documented(bulwark: Bulwark): http.Server {
  return http.createServer((request, response) => {
    const answered = bulwark.answering(
      (name) => request.headers[name],
      async () => {
        const answer = await bulwark.fetch('http://pricing/v1/price');
        response.writeHead(answer.status, bulwark.answerHeaders());
        response.end(await answer.text());
      },
    );
    answered.catch(() => response.destroy()); // no answer, and nothing stood in
  });
}

describe('the example of answering others', () => {
  const policy = {
    apiVersion: 'bulwark.dev/v1',
    kind: 'ResiliencePolicy',
    metadata: { name: 'pricing' },
    spec: {
      target: { service: 'pricing' },
      timeout: { total: '400ms' },
      fallback: [{ static: { status: 200, body: 'a fixed price' } }],
    },
  };

  const served = async (bootstrap: object[]): Promise<string> => {
    const server = documented(await agentOf('127.0.0.1:1', { bootstrap }));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    atEnd(() => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };

  it('hands the deadline of node:http’s headers down, and what was degraded up', async () => {
    const url = await served([policy]);
    const answer = await fetch(url);
    expect([answer.status, await answer.text()]).toEqual([200, 'a fixed price']);
    expect(answer.headers.get('bulwark-degraded')).toMatch(/^static;upstream="pricing"/);
    // The caller has no time left: the fallback’s reason says whose deadline it was.
    const late = await fetch(url, { headers: { 'bulwark-deadline': '0' } });
    expect(late.headers.get('bulwark-degraded')).toMatch(/;reason="deadline"/);
  });

  it('hands it down without a policy too', async () => {
    const url = await served([]);
    const late = await fetch(url, { headers: { 'bulwark-deadline': '0' } });
    expect(late.status).toBe(504);
  });

  it('stands in the documentation word for word', async () => {
    const words = async (file: string) =>
      (await readFile(new URL(file, import.meta.url), 'utf8')).replace(/\s+/g, ' ');
    const [, block = ''] =
      /## Answering others.*?```ts (.*?) ```/.exec(await words('../../../docs/sdk.md')) ?? [];
    expect(block).toMatch(/^import http from 'node:http'; http\.createServer/);
    const [, ...code] = block.split(';');
    expect(await words('answering-example.real.test.ts')).toContain(code.join(';').trim());
  });
});

it('a header that came on several lines is read as one list', async () => {
  const bulwark = await agentOf('127.0.0.1:1');
  const read = (name: string) => (name === 'bulwark-attempt' ? ['3'] : undefined);
  const note = () => Promise.resolve(bulwark.environment.inherited());
  expect(await bulwark.answering(read, note)).toEqual({ callerAttempt: 3 });
  expect(await bulwark.answering(() => ['3', '4'], note)).toEqual({});
});
