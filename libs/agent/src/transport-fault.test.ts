import { describe, expect, it } from 'vitest';
import { judgeError } from './judge.js';
import { transportFault } from './transport-fault.js';

const withCode = (code: string, more: object = {}) => Object.assign(new Error(code), { code, ...more });

describe('what an error says about the connection', () => {
  it('finds the cause where fetch hides it', () => {
    expect(transportFault(new TypeError('fetch failed', { cause: withCode('ECONNREFUSED') }))).toBe(
      'connect',
    );
    expect(transportFault(new TypeError('fetch failed', { cause: withCode('UND_ERR_SOCKET') }))).toBe(
      'reset',
    );
  });

  it('takes a timeout of the connect call as a connect fault', () => {
    expect(transportFault(withCode('ETIMEDOUT', { syscall: 'connect' }))).toBe('connect');
  });

  it('looks at every address that was tried', () => {
    const both = new AggregateError([withCode('ECONNREFUSED'), withCode('EHOSTUNREACH')]);
    expect(transportFault(new TypeError('x', { cause: both }))).toBe('connect');
    expect(
      transportFault(new AggregateError([withCode('ECONNREFUSED'), withCode('ECONNRESET')])),
    ).not.toBeUndefined();
  });

  it('blames nobody for what this machine has no more of', () => {
    for (const code of ['EMFILE', 'EADDRNOTAVAIL', 'ENOBUFS']) {
      const cause = withCode(code, { syscall: 'connect' });
      expect(transportFault(new TypeError('fetch failed', { cause }))).toBe('exhausted');
    }
    const everywhere = new AggregateError([withCode('EMFILE'), withCode('EMFILE')]);
    expect(transportFault(everywhere)).toBe('exhausted');
    expect(judgeError(withCode('EMFILE', { syscall: 'connect' }))).toEqual({ failure: true, ignore: true });
  });

  it('leaves the application’s own errors alone, whatever their chain', () => {
    expect(transportFault(new Error('no stock'))).toBeUndefined();
    expect(transportFault('text')).toBeUndefined();
    const ring = new Error('ring');
    ring.cause = ring;
    expect(transportFault(ring)).toBeUndefined();
  });
});
