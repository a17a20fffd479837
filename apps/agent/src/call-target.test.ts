import { describe, expect, it } from 'vitest';
import { resolveTarget } from './call-target.js';
import { endToEnd, headerOf, withHeaders } from './hop-headers.js';

const rules = {
  upstreams: new Map([['fraud-api', new URL('http://127.0.0.1:8081')]]),
  isSelf: (host: string, port: number) => host === '127.0.0.1' && port === 15_001,
};
const resolve = (url: string, host?: string) =>
  resolveTarget({ url, method: 'GET', headers: { ...(host !== undefined && { host }) } }, rules);

describe('the target of a proxied call', () => {
  it('comes from the URL in absolute form, and its name is looked up among the upstreams', () => {
    expect(resolve('http://fraud-api/check?id=1', '127.0.0.1:15001')).toMatchObject({
      kind: 'target',
      target: {
        service: 'fraud-api',
        host: '127.0.0.1',
        port: 8081,
        authority: 'fraud-api',
        path: '/check?id=1',
        operation: 'GET /check',
      },
    });
  });

  it('gets the path of its upstream before its own', () => {
    const upstreams = new Map([['a', new URL('http://127.0.0.1:1/svc/a/')]]);
    const resolved = resolveTarget(
      { url: 'http://a/x?y', method: 'GET', headers: {} },
      { ...rules, upstreams },
    );
    expect(resolved).toMatchObject({ target: { basePath: '/svc/a', path: '/x?y', operation: 'GET /x' } });
    expect(resolve('http://fraud-api/')).toMatchObject({ target: { basePath: '' } });
  });

  it('is refused where the Host header would move the path, and with it the operation that policies see', () => {
    for (const host of ['a/b', 'a#b', 'a?b', 'user@a', 'a\\b', 'a b']) {
      expect(resolve('/check', host), host).toMatchObject({ kind: 'refused', status: 400, word: 'bad-host' });
    }
    expect(resolve('/check', '[::1]:80')).toMatchObject({
      kind: 'target',
      target: { operation: 'GET /check' },
    });
  });

  it('comes from the Host header in a plain request', () => {
    expect(resolve('/check', 'fraud-api:9000')).toMatchObject({
      target: { service: 'fraud-api', port: 8081, authority: 'fraud-api:9000' },
    });
  });

  it('is the same with a final dot to its name', () => {
    const target = { service: 'fraud-api', port: 8081 };
    expect(resolve('http://fraud-api./x')).toMatchObject({ target });
    expect(resolve('/x', 'fraud-api.:80')).toMatchObject({ target });
  });

  it('is dialled as given when no upstream has its name', () => {
    expect(resolve('http://Other.Example:8080/x')).toMatchObject({
      target: { service: 'other.example', host: 'other.example', port: 8080 },
    });
    expect(resolve('http://[::1]/x')).toMatchObject({ target: { host: '::1', port: 80 } });
  });

  it('keeps the path as it was written', () => {
    expect(resolve('/a/../b//c%2f?x=%20', 'fraud-api')).toMatchObject({
      target: { path: '/a/../b//c%2f?x=%20' },
    });
  });

  it('is refused when it is this proxy itself, or nothing that can be called', () => {
    expect(resolve('/metrics', '127.0.0.1:15001')).toMatchObject({ kind: 'refused', status: 421 });
    expect(resolve('/x')).toMatchObject({ kind: 'refused', status: 400 });
    expect(resolve('/x', 'a b')).toMatchObject({ kind: 'refused', status: 400 });
    for (const url of ['ftp://one/', 'ws://one/chat']) {
      expect(resolve(url, 'fraud-api')).toMatchObject({ kind: 'refused', status: 400 });
    }
    expect(resolve('http://user:pw@fraud-api/x')).toMatchObject({ kind: 'refused', status: 400 });
  });
});

describe('the headers that go on', () => {
  it('are the end-to-end ones, in their order and spelling', () => {
    const raw = [
      'Host',
      'a',
      'X-One',
      '1',
      'Connection',
      'close, X-Hop',
      'x-hop',
      'y',
      'TE',
      'trailers',
      'X-One',
      '2',
    ];
    expect(endToEnd(raw, ['host'])).toEqual(['X-One', '1', 'X-One', '2']);
    expect(headerOf(raw, 'x-hop')).toBe('y');
    expect(withHeaders(['Age', '1', 'B', '2'], { age: '7' })).toEqual(['B', '2', 'age', '7']);
  });
});
