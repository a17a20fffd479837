import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { agentOf, cleanUp, upstream } from '../agent-fixture.js';
import { answeringMiddleware } from './answering-middleware.js';

afterEach(async () => {
  expect(await cleanUp()).toEqual([]);
});

const own = /^static;upstream="below";reason="failure"/;
const below = 'static;upstream="far"';

describe('the head of an answer within a request', () => {
  const answerOf = async (write: (response: ServerResponse) => void) => {
    const bulwark = await agentOf('127.0.0.1:1', {
      bootstrap: [
        {
          apiVersion: 'bulwark.dev/v1',
          kind: 'ResiliencePolicy',
          metadata: { name: 'below' },
          spec: {
            target: { service: 'below' },
            timeout: { total: '1s' },
            fallback: [{ static: { status: 200, body: '' } }],
          },
        },
      ],
    });
    const answering = answeringMiddleware(bulwark, () => true);
    const down = () => Promise.reject(new Error('down'));
    const { url } = await upstream((request, response) =>
      answering(request, response, () => {
        void bulwark.call('below', { fallback: () => '' }, down).then(() => write(response));
      }),
    );
    const answer = await fetch(url);
    return [answer.status, answer.headers.get('x-own'), answer.headers.get('bulwark-degraded')] as const;
  };

  it('has the marks however it is written: implied, with an object, with a list, from elsewhere', async () => {
    const ways: ((response: ServerResponse) => void)[] = [
      (response) => response.setHeader('x-own', 'a').end('x'),
      (response) => response.writeHead(200, { 'x-own': 'a' }).end('x'),
      (response) => response.writeHead(200, 'Fine', { 'x-own': 'a' }).end('x'),
      (response) => response.writeHead(200, ['x-own', 'a']).end('x'),
      (response) => void response.setHeader('x-own', 'a').write('x', () => response.end()),
    ];
    for (const write of ways) {
      expect(await answerOf(write)).toEqual([200, 'a', expect.stringMatching(own) as string]);
    }
  });

  it('keeps the members the handler relays before its own', async () => {
    const ways: ((response: ServerResponse) => void)[] = [
      (response) => response.setHeader('Bulwark-Degraded', below).setHeader('x-own', 'a').end(),
      (response) => response.writeHead(200, { 'Bulwark-Degraded': below, 'x-own': 'a' }).end(),
    ];
    for (const write of ways) {
      const [, other, members] = await answerOf(write);
      expect([other, members?.startsWith(`${below}, static;upstream="below"`)]).toEqual(['a', true]);
    }
  });
});
