import { describe, expect, it } from 'vitest';
import { ArgumentError } from './agent-error.js';
import { completeOptions, isHostPort } from './connect-options.js';

describe('the arguments of connect', () => {
  it('get defaults where nothing was said', () => {
    const complete = completeOptions({ service: 'storefront', controlPlane: '127.0.0.1:9444, [::1]:9445' });
    expect(complete).toMatchObject({ namespace: 'default', startWaitMs: 2_000, failOnRefusal: false });
    expect(complete.addresses).toEqual(['127.0.0.1:9444', '[::1]:9445']);
    expect(complete.instance).toContain(String(process.pid));
  });

  it('are refused with every problem in one error', () => {
    const make = () =>
      completeOptions({
        namespace: 'Shop',
        service: 'a/b',
        instance: 'x y',
        labels: { 'bad name': 'v', app: 'no spaces here' },
        controlPlane: 'http://127.0.0.1:9444,127.0.0.1',
        startWaitMs: -1,
      });
    expect(make).toThrow(ArgumentError);
    let problems: readonly string[] = [];
    try {
      make();
    } catch (error) {
      problems = (error as ArgumentError).problems;
    }
    expect(problems).toHaveLength(8);
    expect(problems.join('\n')).toMatch(/"Shop"[\s\S]*"a\/b"[\s\S]*"x y"[\s\S]*"bad name"[\s\S]*http:/);
  });

  it('accept an address only as HOST:PORT', () => {
    for (const good of ['localhost:1', 'a.b-c.example:9444', '[::1]:65535'])
      expect(isHostPort(good)).toBe(true);
    for (const bad of ['localhost', ':9444', 'h:0', 'h:65536', 'h:1/x', 'dns:///h:1', '::1:9444', 'h:']) {
      expect(isHostPort(bad), bad).toBe(false);
    }
  });
});
