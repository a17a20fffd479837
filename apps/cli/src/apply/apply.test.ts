import { temporaryDirectory } from '@bulwark/testing';
import { mkdirSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeServer, status } from '../testing/fake-server.js';
import { runCli } from '../testing/run-cli.js';
import { policyYaml, sampleAgent } from '../testing/samples.js';

describe('bulwark apply', () => {
  let server: FakeServer;
  let files: ReturnType<typeof temporaryDirectory>;

  beforeEach(async () => {
    server = await FakeServer.start();
    files = temporaryDirectory('apply');
  });

  afterEach(async () => {
    await server.stop();
    files.remove();
  });

  const file = (name: string, text: string) => {
    writeFileSync(`${files.path}/${name}`, text);
    return `${files.path}/${name}`;
  };
  const apply = (...args: string[]) => runCli(['apply', ...args, '--server', server.url]);
  const applyText = (text: string, ...args: string[]) =>
    runCli(['apply', '-f', '-', ...args, '--server', server.url], { stdin: text });
  const spec = (name: string) => server.object('resiliencepolicies', name)?.['spec'];

  it('creates, then says unchanged and sends nothing, then configures', async () => {
    const text = `${policyYaml('a')}---\n${policyYaml('b')}`;
    expect(await applyText(text)).toEqual({
      code: 0,
      stdout: 'resiliencepolicy.bulwark.dev/a created\nresiliencepolicy.bulwark.dev/b created\n',
      stderr: '',
    });
    const writes = server.writes.length;
    expect((await applyText(text)).stdout).toBe(
      'resiliencepolicy.bulwark.dev/a unchanged\nresiliencepolicy.bulwark.dev/b unchanged\n',
    );
    expect(server.writes).toHaveLength(writes);
    expect((await applyText(policyYaml('a', '  timeout: { total: 2s }'))).stdout).toBe(
      'resiliencepolicy.bulwark.dev/a configured\n',
    );
    expect(spec('a')).toEqual({ target: { service: 'a' }, timeout: { total: '2s' } });
  });

  it('fields that a document leaves out, or sets to null, go; those of others stay', async () => {
    const breaker = '  circuitBreaker: { trip: { consecutiveFailures: 10 } }';
    await applyText(policyYaml('a', breaker));
    const stored = server.object('resiliencepolicies', 'a');
    server.put('resiliencepolicies', {
      ...stored,
      metadata: { ...stored?.metadata, labels: { theirs: 'yes' } },
      spec: { ...(stored?.['spec'] as object), mode: 'Shadow' },
    });
    await applyText(policyYaml('a', ''));
    expect(spec('a')).toEqual({ target: { service: 'a' }, mode: 'Shadow' });
    expect(server.object('resiliencepolicies', 'a')?.metadata.labels).toEqual({ theirs: 'yes' });
    await applyText(policyYaml('a', '  mode: null'));
    expect(spec('a')).toEqual({ target: { service: 'a' } });
    await applyText(policyYaml('a', breaker));
    expect(spec('a')).toMatchObject({ circuitBreaker: { trip: { consecutiveFailures: 10 } } });
  });

  it('what was read with -o yaml can be applied again', async () => {
    await applyText(policyYaml('a'));
    const { stdout } = await runCli([
      'get',
      'policy',
      'a',
      '-n',
      'shop',
      '-o',
      'yaml',
      '--server',
      server.url,
    ]);
    expect((await applyText(stdout)).stdout).toBe('resiliencepolicy.bulwark.dev/a unchanged\n');
    server.put('resiliencepolicies', { ...server.object('resiliencepolicies', 'a') });
    const { code, stderr } = await applyText(stdout);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/Conflict[\s\S]*was made from version/)]);
  });

  it('labels and annotations that a document has no more go, those of others stay', async () => {
    const labelled = policyYaml('a').replace('namespace: shop', 'namespace: shop, labels: { mine: "1" }');
    await applyText(labelled);
    const stored = server.object('resiliencepolicies', 'a');
    const labels = { mine: '1', theirs: '2' };
    server.put('resiliencepolicies', { ...stored, metadata: { ...stored?.metadata, labels } });
    await applyText(policyYaml('a'));
    expect(server.object('resiliencepolicies', 'a')?.metadata.labels).toEqual({ theirs: '2' });
  });

  it('reads directories by name, with -R those inside too, and several -f', async () => {
    mkdirSync(`${files.path}/d/inner`, { recursive: true });
    file('d/b.yaml', policyYaml('b'));
    file('d/a.yml', policyYaml('a'));
    file('d/notes.txt', 'no policy');
    file(
      'd/inner/c.json',
      JSON.stringify({
        apiVersion: 'bulwark.dev/v1',
        kind: 'ResiliencePolicy',
        metadata: { name: 'c', namespace: 'shop' },
        spec: { target: { service: 'c' } },
      }),
    );
    const names = ({ stdout }: { stdout: string }) => stdout.match(/\/\w+/g);
    expect(names(await apply('-f', `${files.path}/d`, '-f', file('z.yaml', policyYaml('z'))))).toEqual([
      '/a',
      '/b',
      '/z',
    ]);
    expect(names(await apply('-R', '-f', `${files.path}/d`))).toEqual(['/a', '/b', '/c']);
  });

  it('one that the server refuses keeps all from being applied', async () => {
    const causes = [{ field: 'spec.target', message: 'Invalid value: "b": is taken' }];
    server.intercept = ({ body, method }) =>
      method === 'POST' && JSON.stringify(body).includes('"name":"b"')
        ? status(422, 'Invalid', 'invalid', { kind: 'ResiliencePolicy', name: 'b', causes })
        : undefined;
    const { code, stdout, stderr } = await applyText(
      ['a', 'b', 'c'].map((name) => policyYaml(name)).join('---\n'),
    );
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toBe(
      'stdin:8: The ResiliencePolicy "b" is invalid: spec.target: Invalid value: "b": is taken\n' +
        'error: nothing was applied: the server refuses 1 document\n',
    );
    expect(server.writes).toEqual([]);
  });

  it('a write that fails after others were made is told with exactly those', async () => {
    server.intercept = ({ query, body, method }) =>
      method === 'POST' && query['dryRun'] === undefined && JSON.stringify(body).includes('"name":"b"')
        ? status(500, 'InternalError', 'the store is full')
        : undefined;
    const { code, stdout, stderr } = await applyText(
      ['a', 'b', 'c'].map((name) => policyYaml(name)).join('---\n'),
    );
    expect([code, stdout]).toEqual([1, 'resiliencepolicy.bulwark.dev/a created\n']);
    expect(stderr).toBe(
      [
        'Error from server (InternalError): the store is full',
        'Applied before: shop/a.',
        'Not applied: shop/b (stdin:8).',
        'Not tried: shop/c.',
        'Run the same command again: what is applied already stays unchanged.',
        '',
      ].join('\n'),
    );
  });

  it('a write that another one overtook is computed anew from what is there now', async () => {
    await applyText(policyYaml('a'));
    let overtaken = 2;
    server.intercept = ({ method, query }) => {
      if (method === 'PATCH' && query['dryRun'] === undefined && overtaken > 0) {
        overtaken -= 1;
        server.put('resiliencepolicies', { ...server.object('resiliencepolicies', 'a') });
      }
      return undefined;
    };
    expect((await applyText(policyYaml('a', '  timeout: { total: 3s }'))).stdout).toMatch(/configured/);
    expect(spec('a')).toMatchObject({ timeout: { total: '3s' } });
    overtaken = 99;
    const { code, stderr } = await applyText(policyYaml('a', '  timeout: { total: 4s }'));
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/Conflict[\s\S]*tried 6 times[\s\S]*Not applied: shop\/a/),
    ]);
  });

  it('a repeated write carries the same idempotency key', async () => {
    let asked = 0;
    server.intercept = ({ method, query }) => {
      if (method !== 'POST' || query['dryRun'] !== undefined || (asked += 1) > 1) return undefined;
      return { ...status(503, 'ServiceUnavailable', 'later'), headers: { 'retry-after': '0' } };
    };
    await applyText(policyYaml('a'));
    const keys = server.writes.map(({ headers }) => headers['idempotency-key']);
    expect(keys).toHaveLength(2);
    expect(keys[0]).toBeTruthy();
    expect(keys[0]).toBe(keys[1]);
  });

  it('until there are rollouts it tells to how many agents a change goes at once', async () => {
    server.put('agents', sampleAgent('1'));
    server.put('agents', sampleAgent('2'));
    server.put('agents', sampleAgent('3', { phase: 'Lost' }));
    expect((await applyText(policyYaml('a'))).stderr).toBe(
      'Warning: shop/a is sent to all 2 agents at once: there are no gradual rollouts yet\n',
    );
    expect((await applyText(policyYaml('a'))).stderr).toBe('');
    expect((await applyText(policyYaml('b', '  rollout: { strategy: immediate }'))).stderr).toBe('');
  });

  it('asks once for many: one list, one try and one write a document', async () => {
    const text = Array.from({ length: 30 }, (_, index) => policyYaml(`p${index}`)).join('---\n');
    await applyText(text);
    const count = (method: string) => server.seen.filter((one) => one.method === method).length;
    // The other list is that of the agents it goes to.
    expect([count('GET'), count('POST')]).toEqual([2, 60]);
    server.seen.length = 0;
    expect((await applyText(text)).stdout.match(/unchanged/g)).toHaveLength(30);
    expect(server.seen).toHaveLength(1);
  });

  it('a policy that was deleted between look and write is made again', async () => {
    await applyText(policyYaml('a'));
    let deleted = false;
    server.intercept = ({ method, query }) => {
      if (method === 'PATCH' && query['dryRun'] === undefined && !deleted) {
        deleted = true;
        server.remove('resiliencepolicies', 'a');
      }
      return undefined;
    };
    expect((await applyText(policyYaml('a', '  timeout: { total: 3s }'))).stdout).toMatch(/a created/);
    expect(spec('a')).toMatchObject({ timeout: { total: '3s' } });
  });

  it('--dry-run writes nothing, on the server or here', async () => {
    const onServer = await applyText(policyYaml('a'), '--dry-run=server');
    expect(onServer.stdout).toBe('resiliencepolicy.bulwark.dev/a created (server dry run)\n');
    const here = await applyText(policyYaml('a'), '--dry-run=client');
    expect(here.stdout).toBe('resiliencepolicy.bulwark.dev/a created (dry run)\n');
    expect(server.writes).toEqual([]);
    expect(server.object('resiliencepolicies', 'a')).toBeUndefined();
    await server.stop();
    const alone = await applyText(policyYaml('a'), '--dry-run=client');
    expect([alone.code, alone.stdout]).toEqual([0, 'resiliencepolicy.bulwark.dev/a valid (dry run)\n']);
    server = await FakeServer.start();
  });

  it('-n fills in what a document leaves out, and must not contradict it', async () => {
    const without = policyYaml('a').replace(', namespace: shop', '');
    await applyText(without, '-n', 'web');
    expect(server.object('resiliencepolicies', 'a', 'web')).toBeDefined();
    const { code, stderr } = await applyText(`${without}---\n${policyYaml('b')}`, '-n', 'web');
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('stdin:8: metadata.namespace: "shop" is not'),
    ]);
  });
});

const aliasBomb = ['a: &a [x, x, x, x, x, x, x, x, x]']
  .concat(
    [...'bcdefghij'].map(
      (name, i) => `${name}: &${name} [${Array(9).fill(`*${'abcdefghi'[i]}`).join(', ')}]`,
    ),
  )
  .join('\n');

describe('bad input of apply', () => {
  let server: FakeServer;

  beforeEach(async () => {
    server = await FakeServer.start();
  });

  afterEach(() => server.stop());

  it.each([
    ['a misspelt field', policyYaml('a').replace('timeout:', 'timeuot:'), /stdin:6: spec\.timeuot.*timeout/],
    ['a number without a unit', policyYaml('a').replace('1s', '1000'), /stdin:6: spec\.timeout\.total.*1000/],
    ['a wrong unit', policyYaml('a').replace('1s', '1 S'), /stdin:6: spec\.timeout\.total.*"1 S"/],
    [
      'a duplicate key',
      `${policyYaml('a')}  timeout: { total: 2s }\n`,
      /stdin:7: .*(duplicate|twice|already)/i,
    ],
    ['a __proto__ key', `${policyYaml('a')}  __proto__: { polluted: true }\n`, /stdin:7: .*__proto__/],
    ['an alias bomb', aliasBomb, /alias/],
    ['10 MB of YAML', `${policyYaml('a')}# ${'x'.repeat(10 * 1024 * 1024)}\n`, /1 MiB/],
    ['an empty text', '', /empty/],
    ['a kind that is not known', policyYaml('a').replace('ResiliencePolicy', 'Polcy'), /kind.*Polcy/],
    ['one name twice', `${policyYaml('a')}---\n${policyYaml('a')}`, /stdin:10: metadata\.name.*stdin:/],
    [
      'one bad document among three good ones',
      ['a', 'b', 'c', 'd']
        .map((name) => policyYaml(name).replace('1s', name === 'c' ? 'never' : '1s'))
        .join('---\n'),
      /stdin:20: spec\.timeout\.total.*never/,
    ],
  ])('%s is refused with its place, and nothing is sent', async (_, text, says) => {
    const { code, stdout, stderr } = await runCli(['apply', '-f', '-', '--server', server.url], {
      stdin: text,
    });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(says);
    expect(stderr).toMatch(/\nerror: nothing was applied: \d+ problems? in 1 file\n$/);
    expect(server.seen).toEqual([]);
  });

  it('all problems of all documents and files come in one answer', async () => {
    using files = temporaryDirectory('bad');
    writeFileSync(`${files.path}/one.yaml`, policyYaml('a', '  timeuot: 1\n  mode: Enforced'));
    writeFileSync(
      `${files.path}/two.yaml`,
      `${policyYaml('b')}---\n${policyYaml('c', '  timeout: { attempt: 3s, total: 2s }')}`,
    );
    const { stderr } = await runCli(['apply', '-f', files.path, '--server', server.url]);
    expect(stderr.replaceAll(`${files.path}/`, '').match(/^[a-z.]+:\d+: [\w.]+/gm)).toEqual([
      'one.yaml:6: spec.timeuot',
      'one.yaml:7: spec.mode',
      'two.yaml:13: spec.timeout.attempt',
    ]);
    expect(stderr).toContain('error: nothing was applied: 3 problems in 2 files\n');
  });

  it.each([
    [['-f', '/no/such/file.yaml'], 1, /\/no\/such\/file\.yaml cannot be read: there is no such file/],
    [['-f', '/dev/null'], 1, /empty/],
    [[], 64, /say what to read: -f/],
    [['-f', '-', '--dry-run=maybe'], 64, /Allowed choices are none, client, server/],
  ])('%j is exit code %i', async (args, code, says) => {
    const answer = await runCli(['apply', ...args, '--server', server.url]);
    expect(answer.code).toBe(code);
    expect(answer.stderr).toMatch(says);
  });
});
