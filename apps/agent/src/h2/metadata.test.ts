import { sensitiveHeaders, type IncomingHttpHeaders } from 'node:http2';
import { describe, expect, it } from 'vitest';
import { listIn, passedOn, valueOf } from './metadata.js';

/** As Node reads them: values of a name that may come once only are not joined. */
function read(raw: readonly string[], once: readonly string[] = []): IncomingHttpHeaders {
  const parsed: Record<string, string> = {};
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = '', value = ''] = raw.slice(at, at + 2);
    if (parsed[name] === undefined) parsed[name] = value;
    else if (!once.includes(name)) parsed[name] += `, ${value}`;
  }
  return parsed;
}

const none = new Set<string>();

describe('metadata on its way to the other side', () => {
  it('keeps several values of a name apart and in order', () => {
    const raw = ['a', '1', 'b-bin', 'AP8=', 'a', '2, 3', 'a', ''];
    expect(passedOn(raw, read(raw), none)).toEqual({ a: ['1', '2, 3', ''], 'b-bin': 'AP8=' });
  });

  it('keeps one value of a name that may come once only', () => {
    const raw = ['user-agent', 'one', 'user-agent', 'two'];
    expect(passedOn(raw, read(raw, ['user-agent']), none)).toEqual({ 'user-agent': 'one' });
  });

  it('leaves out pseudo-headers, those of one connection, and what it is told to', () => {
    const raw = [
      ...[':path', '/', ':status', '200', 'host', 'x', 'connection', 'close', 'keep-alive', '5'],
      ...[
        'upgrade',
        'h2c',
        'http2-settings',
        'AA',
        'transfer-encoding',
        'chunked',
        'proxy-authorization',
        'x',
      ],
      ...['bulwark-attempt', '2', 'own', 'stays'],
    ];
    expect(passedOn(raw, read(raw), new Set(['bulwark-attempt']))).toEqual({ own: 'stays' });
  });

  it('keeps te: trailers, which gRPC needs, and nothing else of te', () => {
    const raw = ['te', 'trailers, deflate'];
    expect(passedOn(raw, read(raw), none)).toEqual({ te: 'trailers' });
  });

  it('keeps what must not be indexed unindexed', () => {
    const parsed = read(['authorization', 'secret']);
    Reflect.set(parsed, sensitiveHeaders, ['authorization']);
    const kept = passedOn(['authorization', 'secret'], parsed, none);
    expect(Reflect.get(kept, sensitiveHeaders)).toEqual(['authorization']);
  });

  it('is read by its first value, or as one list', () => {
    const headers = { a: ['1', '2'], b: 'x' };
    expect([valueOf(headers, 'a'), valueOf(headers, 'b'), valueOf(headers, 'c')]).toEqual([
      '1',
      'x',
      undefined,
    ]);
    expect([listIn(headers, 'a'), listIn(headers, 'b'), listIn(headers, 'c')]).toEqual([
      '1, 2',
      'x',
      undefined,
    ]);
  });
});
