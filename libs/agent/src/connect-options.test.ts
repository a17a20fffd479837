import { describe, expect, it } from 'vitest';
import { ArgumentError } from './agent-error.js';
import { completeOptions, connectProblems, isHostPort, type ConnectOptions } from './connect-options.js';
import { connect, silentLogger } from './index.js';

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

  it.each<[unknown, string[]]>([
    [undefined, ['options (absent) must be an object with at least service, and controlPlane or bootstrap']],
    [
      { service: 's', bootstrap: {} },
      ['bootstrap {} must be the path of a file, or an array of policy documents'],
    ],
    [
      { service: 's', controlPlane: 'h:1', logger: { warn: () => undefined } },
      ['logger {} must be an object with the methods debug, info, warn, error'],
    ],
    [
      { servce: 's', service: 's', controlplane: 'h:1', controlPlane: 'h:1', retries: 3 },
      [
        'there is no option "servce": did you mean service?',
        'there is no option "controlplane": did you mean controlPlane?',
        expect.stringMatching(/^there is no option "retries": known are namespace, service, /) as string,
      ],
    ],
    [
      { service: 5, controlPlane: ['h:1'], startWaitMs: '2s', labels: 'app=x', stateDir: 7, onEvent: 'log' },
      [
        'service 5 must be a string',
        'controlPlane ["h:1"] must be a string',
        'startWaitMs "2s" must be a number',
        'labels "app=x" must be an object',
        'stateDir 7 must be a string',
        'onEvent "log" must be a function',
      ],
    ],
    [
      { controlPlane: 'nowhere', logger: null },
      [
        'logger null must be an object with the methods debug, info, warn, error',
        expect.stringMatching(/^service \(absent\) must be a DNS name/) as string,
        expect.stringMatching(/^controlPlane address "nowhere" must be HOST:PORT/) as string,
      ],
    ],
  ])('given without types are told as they are: %j', async (given, problems) => {
    expect(connectProblems(given as ConnectOptions)).toEqual(problems);
    await expect(connect(given as ConnectOptions)).rejects.toMatchObject({
      code: 'BULWARK_ARGUMENT',
      problems,
    });
  });

  it('name the document of the bootstrap that is wrong, by its index and its name', async () => {
    const document = (name: string, spec: object) => ({
      apiVersion: 'bulwark.dev/v1',
      kind: 'ResiliencePolicy',
      metadata: { name },
      spec: { target: { service: name }, timeout: { total: '1s' }, ...spec },
    });
    const bootstrap = [document('carts', {}), document('fraud', { retri: {} }), null, document('carts', {})];
    const refused = connect({
      service: 'storefront',
      bootstrap: bootstrap as object[],
      logger: silentLogger,
    });
    await expect(refused).rejects.toThrow(ArgumentError);
    await expect(refused).rejects.toThrow(/bootstrap\[1\] fraud[^]*retri[^]*bootstrap\[2\]/);
    await expect(refused).rejects.toThrow(/bootstrap\[3\] carts[^]*is in bootstrap\[0\] carts:?\d* already/);
  });

  it('accept an address only as HOST:PORT', () => {
    for (const good of ['localhost:1', 'a.b-c.example:9444', '[::1]:65535'])
      expect(isHostPort(good)).toBe(true);
    for (const bad of ['localhost', ':9444', 'h:0', 'h:65536', 'h:1/x', 'dns:///h:1', '::1:9444', 'h:']) {
      expect(isHostPort(bad), bad).toBe(false);
    }
  });
});
