import { describe, expect, it } from 'vitest';
import { lastGoodKey, mayBeKept } from './last-good-key.js';

const key = (
  headers: Record<string, string>,
  varyBy: string[] = [],
  url = 'http://a/x?q=1',
  method = 'GET',
) => lastGoodKey({ method, url, header: (name) => headers[name] }, varyBy);

describe('the name of a remembered answer', () => {
  it('differs by caller, full URL, method and varied headers, and by nothing else', () => {
    const one = key({ authorization: 'Bearer one' });
    expect(key({ authorization: 'Bearer one', 'user-agent': 'x' })).toBe(one);
    expect(key({ authorization: 'Bearer two' })).not.toBe(one);
    expect(key({ cookie: 'Bearer one' })).not.toBe(one);
    expect(key({})).not.toBe(one);
    expect(key({}, [], 'http://a/x?q=2')).not.toBe(key({}));
    expect(key({}, [], 'http://a/x?q=1', 'HEAD')).not.toBe(key({}));
    expect(key({ 'accept-language': 'de' }, ['header:accept-language'])).not.toBe(
      key({ 'accept-language': 'en' }, ['header:accept-language']),
    );
  });

  it('holds no secret', () => {
    expect(key({ authorization: 'Bearer secret' })).not.toContain('secret');
  });

  it('does not exist for a method that changes things', () => {
    expect(key({}, [], 'http://a/', 'POST')).toBeUndefined();
  });
});

describe('an answer', () => {
  it('is kept when it is a full success that does not forbid it', () => {
    const cacheControl = (value: string) => (name: string) => (name === 'cache-control' ? value : undefined);
    expect(mayBeKept(200, cacheControl('private, max-age=0'))).toBe(true);
    expect(mayBeKept(200, cacheControl('private, No-Store'))).toBe(false);
    for (const status of [206, 304, 404, 503])
      expect(
        mayBeKept(status, () => undefined),
        String(status),
      ).toBe(false);
  });
});
