import { describe, expect, it } from 'vitest';
import { parseSidecarOptions } from './sidecar-options.js';

describe('the flags of the sidecar', () => {
  it('have the defaults that are promised', () => {
    const parsed = parseSidecarOptions(['--service', 'storefront'], {});
    expect(parsed).toMatchObject({
      kind: 'run',
      options: {
        namespace: 'default',
        controlPlane: '127.0.0.1:9444',
        listen: { host: '127.0.0.1', port: 15_001 },
        admin: { host: '127.0.0.1', port: 15_000 },
        drainMs: 10_000,
      },
    });
  });

  it('win over the environment, which wins over the defaults', () => {
    const parsed = parseSidecarOptions(['--namespace=shop'], {
      BULWARK_SERVICE: 'storefront',
      BULWARK_NAMESPACE: 'other',
      BULWARK_CONTROL_PLANE: 'cp:1',
      BULWARK_UPSTREAM: 'a=http://127.0.0.1:1,b=http://127.0.0.1:2',
      BULWARK_LABELS: 'app=storefront,bulwark.dev/zone=z1',
    });
    if (parsed.kind !== 'run') throw new Error('expected to run');
    expect(parsed.options).toMatchObject({ namespace: 'shop', service: 'storefront', controlPlane: 'cp:1' });
    expect(parsed.options.labels).toEqual({ app: 'storefront', 'bulwark.dev/zone': 'z1' });
    expect([...parsed.options.upstreams.keys()]).toEqual(['a', 'b']);
  });

  it('are refused with all their problems at once', () => {
    const parsed = parseSidecarOptions(
      [
        '--servce',
        'x',
        '--listen',
        '15001',
        '--upstream',
        'fraud',
        '--upstream',
        'p=http://h/?query',
        '--labels',
        'app',
        '--drain-timeout',
        '10',
        'stray',
        '--state',
      ],
      {},
    );
    if (parsed.kind !== 'wrong') throw new Error('expected problems');
    const text = parsed.problems.join('\n');
    for (const part of [
      '--servce, did you mean --service?',
      '--service NAME is required',
      '--listen "15001"',
      '--upstream "fraud"',
      'scheme, host, port and a path at most',
      '--labels "app"',
      '--drain-timeout "10"',
      '"stray"',
      '--state needs a value',
    ]) {
      expect(text).toContain(part);
    }
  });

  it('refuse an address that others reach, unless it is said to be meant', () => {
    const beyond = ['--service', 's', '--listen', '0.0.0.0:15001', '--admin', '127.example:15000'];
    const parsed = parseSidecarOptions(beyond, {});
    if (parsed.kind !== 'wrong') throw new Error('expected problems');
    expect(parsed.problems).toEqual([
      expect.stringMatching(/^--listen 0\.0\.0\.0 .*--allow-non-loopback/),
      expect.stringMatching(/^--admin 127\.example .*--allow-non-loopback/),
    ]);
    expect(parseSidecarOptions([...beyond, '--allow-non-loopback'], {}).kind).toBe('run');
    expect(parseSidecarOptions(beyond, { BULWARK_ALLOW_NON_LOOPBACK: 'true' }).kind).toBe('run');
  });

  it('take a name that is in no map as it is, and a port of 0 as any free one', () => {
    const parsed = parseSidecarOptions(
      ['--service', 's', '--listen', '127.0.0.1:0', '--admin', '[::1]:0'],
      {},
    );
    expect(parsed).toMatchObject({
      kind: 'run',
      options: { listen: { port: 0 }, admin: { host: '::1', port: 0 } },
    });
  });

  it('open the inbound side with where callers come and where the service is, and with nothing less', () => {
    const parse = (...argv: string[]) => parseSidecarOptions(['--service', 's', ...argv], {});
    const parsed = parse('--inbound', '0.0.0.0:8080', '--app', 'http://127.0.0.1:9000/base');
    if (parsed.kind !== 'run') throw new Error(JSON.stringify(parsed));
    expect(parsed.options.inbound).toMatchObject({ listen: { host: '0.0.0.0', port: 8_080 } });
    expect(parsed.options.inbound?.app.href).toBe('http://127.0.0.1:9000/base');
    expect(parse()).toMatchObject({ options: { inbound: undefined, bypassFile: undefined } });
    const problems = (...argv: string[]) => {
      const wrong = parse(...argv);
      return wrong.kind === 'wrong' ? wrong.problems : [];
    };
    expect(problems('--inbound', '127.0.0.1:1')).toEqual([expect.stringContaining('--inbound needs --app')]);
    expect(problems('--app', 'http://h:1')).toEqual([expect.stringContaining('--app needs --inbound')]);
    const inbound = ['--inbound', '127.0.0.1:8080', '--app'];
    for (const app of [
      '127.0.0.1:9000',
      'https://127.0.0.1:9000',
      'http://127.0.0.1:9000/?a=1',
      'http://u@h/',
    ]) {
      expect(problems(...inbound, app), app).toEqual([expect.stringContaining(`--app "${app}"`)]);
    }
    for (const [app, flag] of [
      ['http://localhost:8080', '--inbound'],
      ['http://127.0.0.1:15001', '--listen'],
      ['http://[::1]:15000', '--admin'],
    ] as const) {
      expect(problems(...inbound, app)).toEqual([expect.stringContaining(`is ${flag} of this sidecar`)]);
    }
    expect(problems('--inbound', '8080', '--app', 'ftp://x', '--trusted-peers', 'lan,10.0.0.0/8')).toEqual([
      expect.stringContaining('--inbound "8080"'),
      expect.stringContaining('--app "ftp://x"'),
      expect.stringContaining('--trusted-peers "lan"'),
    ]);
  });

  it('say whom to believe and which file takes the guards out; by default this machine and none', () => {
    const trusts = (argv: string[], env: Record<string, string>, address: string) => {
      const parsed = parseSidecarOptions(['--service', 's', ...argv], env);
      return parsed.kind === 'run' && parsed.options.trustedPeers.trusts(address);
    };
    expect([trusts([], {}, '127.0.0.1'), trusts([], {}, '10.0.0.1')]).toEqual([true, false]);
    const env = { BULWARK_TRUSTED_PEERS: '10.0.0.0/8', BULWARK_BYPASS_FILE: '/run/bypass' };
    expect([trusts([], env, '127.0.0.1'), trusts([], env, '10.0.0.1')]).toEqual([false, true]);
    expect(trusts(['--trusted-peers', '192.0.2.1'], env, '10.0.0.1')).toBe(false);
    expect(parseSidecarOptions(['--service', 's'], env)).toMatchObject({
      options: { bypassFile: '/run/bypass' },
    });
  });

  const problemsOf = (...flags: string[]): readonly string[] => {
    const parsed = parseSidecarOptions(['--service', 's', ...flags], {});
    return parsed.kind === 'wrong' ? parsed.problems : [];
  };

  it('must not name one port twice', () => {
    expect(problemsOf('--listen', '127.0.0.1:15000')).toEqual([
      '--listen and --admin name the same port, 15000: give each one of its own',
    ]);
    expect(problemsOf('--listen', 'localhost:7', '--inbound', '0.0.0.0:7', '--app', 'http://a:1')).toEqual([
      '--listen and --inbound name the same port, 7: give each one of its own',
    ]);
    expect(problemsOf('--listen', '127.0.0.1:7', '--admin', '[::1]:7')).toEqual([]);
    expect(problemsOf('--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0')).toEqual([]);
  });

  it('have one problem for one mistake, and it says what is allowed', () => {
    expect(problemsOf('--listen', '999999')).toEqual([
      '--listen "999999" must be HOST:PORT, such as 127.0.0.1:15001, with a port up to 65535',
    ]);
    expect(problemsOf('--listen', '127.0.0.1:999999')).toHaveLength(1);
    expect(problemsOf('--labels', 'a=b,a=c')).toEqual(['--labels a is given twice']);
    for (const duration of ['9999h', '25h', '999999m', '10', 'soon']) {
      expect(problemsOf('--drain-timeout', duration)).toEqual([
        `--drain-timeout "${duration}" must be a duration such as 10s or 500ms, from 0s to 24h`,
      ]);
    }
    expect(problemsOf('--drain-timeout', '24h')).toEqual([]);
  });
});
