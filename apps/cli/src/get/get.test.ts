import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FakeServer, status } from '../testing/fake-server.js';
import { runCli } from '../testing/run-cli.js';
import { sampleAgent, sampleBreaker } from '../testing/samples.js';

describe('bulwark get', () => {
  let server: FakeServer;
  const get = (...args: string[]) => runCli(['get', ...args, '--server', server.url]);

  beforeAll(async () => {
    server = await FakeServer.start();
    server.put('breakers', sampleBreaker('reco.1a2b3c4d'));
    server.put(
      'breakers',
      sampleBreaker('pay.00ff00ff', {
        state: 'Recovering',
        share: '25%',
        agents: { total: 12, open: 9, halfOpen: 0, closed: 3, synced: 12 },
        calls: { perSecond: 2_100, failureRatio: 0.382, rejectedPerSecond: 12 },
      }),
    );
    server.put('agents', sampleAgent('1'));
  });

  beforeEach(() => {
    server.seen.length = 0;
    server.intercept = () => undefined;
  });

  afterAll(() => server.stop());

  it('shows a table, worst first, numbers to the right, hints nowhere', async () => {
    const { code, stdout, stderr } = await get('breakers', '-n', 'shop');
    expect(stdout).toBe(
      [
        'NAME            STATE        OPEN   SHARE   CALLS/S   ERROR   REJECTED/S   SINCE   KEY',
        'pay.00ff00ff    Recovering   9/12     25%      2.1k   38.2%         12.0   2m14s   target',
        'reco.1a2b3c4d   Closed       0/12    100%     412.0    0.4%            0   2m14s   target',
        '',
      ].join('\n'),
    );
    expect([code, stderr]).toEqual([0, '']);
  });

  it('colour stands on a terminal only, and not with NO_COLOR', async () => {
    const args = ['get', 'br/reco.1a2b3c4d', '-n', 'shop', '--server', server.url];
    expect((await runCli(args, { terminal: true })).stdout).toContain('\u001b[32mClosed\u001b[0m  ');
    expect((await runCli(args, { terminal: true, env: { NO_COLOR: '1' } })).stdout).not.toContain('\u001b');
    expect((await runCli([...args, '--color', 'always'])).stdout).toContain('\u001b[32m');
  });

  it('several kinds come one after the other, each name with its kind', async () => {
    const { stdout } = await get('br,agents', '-n', 'shop');
    expect(stdout.split('\n').map((line) => line.split(/ +/)[0])).toEqual([
      'NAME',
      'breaker.bulwark.dev/pay.00ff00ff',
      'breaker.bulwark.dev/reco.1a2b3c4d',
      '',
      'NAME',
      'agent.bulwark.dev/storefront.1',
      '',
    ]);
  });

  it('-o name, json and yaml give objects as the API has them', async () => {
    expect((await get('breakers', '-n', 'shop', '-o', 'name')).stdout).toBe(
      'breaker.bulwark.dev/reco.1a2b3c4d\nbreaker.bulwark.dev/pay.00ff00ff\n',
    );
    const list = JSON.parse((await get('br', '-n', 'shop', '-o', 'json')).stdout) as {
      kind: string;
      items: object[];
    };
    expect([list.kind, list.items.length]).toEqual(['List', 2]);
    const one = JSON.parse((await get('br', 'reco.1a2b3c4d', '-n', 'shop', '-o', 'json')).stdout) as object;
    expect(one).toMatchObject({ kind: 'Breaker', metadata: { name: 'reco.1a2b3c4d' } });
    expect((await get('br/reco.1a2b3c4d', '-n', 'shop', '-o', 'yaml')).stdout).toContain(
      '\n  name: reco.1a2b3c4d\n',
    );
  });

  it('-A, --show-labels, -L, --no-headers and -o wide add and leave out columns', async () => {
    const { stdout } = await get('br', '-A', '--show-labels', '-L', 'team', '--no-headers');
    expect(stdout.split('\n')[1]).toBe(
      'shop   reco.1a2b3c4d   Closed       0/12   100%   412.0    0.4%      0   2m14s   target   reco   team=reco',
    );
    expect((await get('br', '-n', 'shop', '-o', 'wide')).stdout.split('\n')[0]).toMatch(
      /KEY +POLICY .* PROBE +NOTE$/,
    );
  });

  it('--sort-by orders by a field, numbers by size', async () => {
    const names = async (path: string) =>
      (await get('br', '-n', 'shop', '--no-headers', '--sort-by', path)).stdout.match(/^\w+/gm);
    expect(await names('.status.calls.perSecond')).toEqual(['reco', 'pay']);
    expect(await names('{.status.calls.rejectedPerSecond}')).toEqual(['reco', 'pay']);
    expect(await names('.metadata.name')).toEqual(['pay', 'reco']);
  });

  it('nothing found is told on stderr, and is no error', async () => {
    expect(await get('policies')).toEqual({
      code: 0,
      stdout: '',
      stderr: 'No resources found in default namespace.\n',
    });
    expect(await get('policies', '-A')).toEqual({ code: 0, stdout: '', stderr: 'No resources found\n' });
    expect(JSON.parse((await get('policies', '-o', 'json')).stdout)).toMatchObject({
      kind: 'List',
      items: [],
    });
  });

  it('a name that is not there is an error in kubectl’s words, and the others are shown', async () => {
    const { code, stdout, stderr } = await get('br', 'no', 'reco.1a2b3c4d', '-n', 'shop', '-o', 'name');
    expect([code, stdout]).toEqual([1, 'breaker.bulwark.dev/reco.1a2b3c4d\n']);
    expect(stderr).toBe('Error from server (NotFound): breakers.bulwark.dev "no" not found\n');
  });

  it('reads every page of a long list', async () => {
    server.intercept = ({ query }) => {
      if (query['continue'] === undefined) return page([sampleBreaker('a.1')], 'next');
      return page([sampleBreaker('b.1')], '');
    };
    const page = (items: object[], next: string) => ({
      code: 200,
      body: { items, metadata: { continue: next } },
    });
    expect((await get('br', '-o', 'name')).stdout).toBe('breaker.bulwark.dev/a.1\nbreaker.bulwark.dev/b.1\n');
  });

  it('-o jsonpath gives single values, of one object or of a list', async () => {
    const text = async (path: string, ...args: string[]) =>
      (await get('br', ...args, '-n', 'shop', '-o', `jsonpath=${path}`)).stdout;
    expect(await text('{.items[*].status.state}')).toBe('Closed Recovering');
    expect(await text('{.status.agents}', 'reco.1a2b3c4d')).toBe(
      '{"total":12,"open":0,"halfOpen":0,"closed":12,"synced":12}',
    );
    const lines = '{range .items[*]}{.metadata.name}={.status.share}{"\\n"}{end}';
    expect(await text(lines)).toBe('reco.1a2b3c4d=\npay.00ff00ff=25%\n');
    expect(await text("{$.metadata.labels['team']} is {.items[-1].x}", 'reco.1a2b3c4d')).toBe('reco is ');
  });

  it('what answers there and is no Bulwark server is told as such', async () => {
    for (const code of [200, 302, 404, 405]) {
      server.intercept = () => ({ code, body: { hello: 'world' } });
      for (const args of [['br'], ['br', 'a'], ['br', '-o', 'json'], ['br', '-w']]) {
        expect(await get(...args)).toMatchObject({
          code: 1,
          stdout: '',
          stderr: expect.stringMatching(/^error: \S+ does not look like a Bulwark API\nIs it /) as string,
        });
      }
    }
  });

  it('selectors go to the server', async () => {
    await get('br', '-l', 'app=a,tier!=b', '--field-selector', 'metadata.name=x');
    expect(server.seen[0]?.query).toMatchObject({
      labelSelector: 'app=a,tier!=b',
      fieldSelector: 'metadata.name=x',
    });
  });

  it('a server that refuses is quoted; one that is busy is asked again when it says so', async () => {
    server.intercept = () => status(403, 'Forbidden', 'you may not list breakers');
    expect(await get('br')).toMatchObject({
      code: 1,
      stderr: 'Error from server (Forbidden): you may not list breakers\n',
    });
    let asked = 0;
    server.intercept = () =>
      (asked += 1) > 2
        ? undefined
        : { ...status(503, 'ServiceUnavailable', 'later'), headers: { 'retry-after': '0' } };
    expect((await get('br', '-n', 'shop', '-o', 'name')).code).toBe(0);
    expect(asked).toBe(3);
  });

  it('warnings of the server go to stderr, once', async () => {
    server.intercept = () => ({
      code: 200,
      body: { items: [], metadata: {} },
      headers: { warning: '299 - "say \\"this\\"", 299 - "and that"' },
    });
    expect((await get('br,agents', '-o', 'json')).stderr).toBe('Warning: say "this"\nWarning: and that\n');
  });

  it('a gRPC port in place of the HTTP port is told as such', async () => {
    const grpc = createServer();
    await new Promise<void>((resolve) => grpc.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(grpc.address() as AddressInfo).port}`;
    const { code, stderr } = await runCli(['get', 'br', '--server', url]);
    grpc.close();
    expect(code).toBe(1);
    expect(stderr).toContain(`${url} could not be reached: what answers there speaks no HTTP/1.1`);
    expect(stderr).toContain('is this the gRPC port?');
  });

  it('a server that is not there is one clear line and what to do', async () => {
    const other = await FakeServer.start();
    const { url } = other;
    await other.stop();
    expect(await runCli(['get', 'br', '--server', url])).toEqual({
      code: 1,
      stdout: '',
      stderr:
        `error: the server ${url} could not be reached: nothing listens there (connection refused)\n` +
        'Is the server running? Start one with: ./bulwark server. Another address: --server URL, or BULWARK_SERVER.\n',
    });
  });

  it.each([
    [['get'], /missing required argument/],
    [['get', 'pods'], /no kind "pods"[\s\S]*Kinds: /],
    [['get', 'br', '-o', 'xml'], /-o xml is not known[\s\S]*json/],
    [['get', 'br', '--no-such'], /unknown option[\s\S]*bulwark get --help/],
    [['get', 'br', '-o', 'jsonpath={.a'], /cannot be read[\s\S]*Example/],
    [['get', 'br', '-o', 'jsonpath={.a[?(@.x)]}'], /cannot be read/],
    [['get', 'br', '-o', 'jsonpath={range .a}x'], /without \{end\}/],
    [['get', 'br', '-o', 'jsonpath=x{end}'], /without \{range\}/],
    [['get', 'br/x', '-A'], /-A/],
    [['get', 'br/'], /not kind\/name/],
    [['get', 'br', '-n', 'A/B'], /no name of a namespace/],
    [['get', 'br', '--server', 'ftp://x'], /not the URL/],
    [['gett'], /Did you mean get/],
    [[], /Usage: bulwark/],
  ])('wrong usage is exit code 64 and a hint: %j', async (args, says) => {
    const { code, stdout, stderr } = await runCli(args);
    expect([code, stdout]).toEqual([64, '']);
    expect(stderr).toMatch(says);
  });

  it('asking for help is no error', async () => {
    for (const args of [['--help'], ['help'], ['get', '--help'], ['help', 'get']]) {
      const { code, stdout, stderr } = await runCli(args);
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toMatch(/^Usage: bulwark/);
    }
  });
});
