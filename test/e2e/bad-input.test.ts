import { freePort, temporaryDirectory } from '@bulwark/testing';
import { createServer } from 'node:net';
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { getJson, run, startServer, startSidecar, type Server } from './programs.js';

const GOOD = (name: string) => `
apiVersion: bulwark.dev/v1
kind: ResiliencePolicy
metadata: { name: ${name}, namespace: bad }
spec:
  target: { service: ${name} }
  timeout: { total: 1s }
`;

const aliasBomb = () => {
  const levels = ['a: &a [x, x, x, x, x, x, x, x, x]'];
  for (const [index, name] of [...'bcdefghij'].entries()) {
    const former = 'abcdefghi'[index];
    levels.push(`${name}: &${name} [${Array(9).fill(`*${former}`).join(', ')}]`);
  }
  return levels.join('\n');
};

/** What is wrong, the text, and what the answer must name. */
const documents: readonly (readonly [string, string, RegExp])[] = [
  ['a misspelt field', GOOD('one').replace('timeout:', 'timeuot:'), /spec\.timeuot[\s\S]*timeout/],
  ['a number without a unit', GOOD('one').replace('1s', '1000'), /spec\.timeout\.total[\s\S]*1000/],
  ['a wrong unit', GOOD('one').replace('1s', '1 S'), /spec\.timeout\.total/],
  ['a duplicate key', `${GOOD('one')}  timeout: { total: 2s }\n`, /stands in this map already/],
  ['a __proto__ key', `${GOOD('one')}  __proto__: { polluted: true }\n`, /__proto__/],
  ['an alias bomb', aliasBomb(), /alias/i],
  ['10 MB of YAML', `${GOOD('one')}# ${'x'.repeat(10 * 1024 * 1024)}\n`, /MiB|too large|at most/i],
  ['an empty file', '', /empty|no document/i],
  [
    'one bad document among three good ones',
    [GOOD('one'), GOOD('two'), GOOD('three').replace('total: 1s', 'total: never'), GOOD('four')].join(
      '---\n',
    ),
    /spec\.timeout\.total[\s\S]*never/,
  ],
];

describe('bad documents', () => {
  const directory = temporaryDirectory('bad-input');
  let server: Server;

  beforeAll(async () => {
    server = await startServer(['--store', `file:${directory.path}/store`]);
  });

  afterAll(async () => {
    await server.process.stop();
    directory.remove();
  });

  it.each(documents)(
    '%s is refused within two seconds, says what to do, and nothing is stored',
    async (_, text, says) => {
      const file = `${directory.path}/document.yaml`;
      writeFileSync(file, text);
      const startedMs = performance.now();
      const answer = await run(['apply', '-f', file, '--server', `http://${server.http}`]);
      expect(performance.now() - startedMs).toBeLessThan(2_000);
      expect(answer.code).toBe(1);
      expect(answer.stderr).toMatch(says);
      expect(answer.stderr).not.toMatch(/\n\s+at .*:\d+:\d+/);
      const url = `http://${server.http}/apis/bulwark.dev/v1/namespaces/bad/resiliencepolicies`;
      expect((await getJson<{ items: unknown[] }>(url)).items).toEqual([]);
    },
  );

  it('an agent whose instance id is already connected is refused and says so', async () => {
    const args = [
      '--service',
      'storefront',
      '--namespace',
      'bad',
      '--instance',
      'same',
      '--control-plane',
      server.grpc,
    ];
    const first = await startSidecar(args);
    try {
      const second = await run(['agent', ...args, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']);
      expect(second.code).not.toBe(0);
      expect(second.stderr + second.stdout).toMatch(
        /same[\s\S]*already connected|already connected[\s\S]*same/,
      );
    } finally {
      await first.process.stop();
    }
  });
});

describe('servers and sidecars that cannot start', () => {
  it('a wrong address of the control plane is wrong usage', async () => {
    const answer = await run(['agent', '--service', 'a', '--control-plane', 'http://somewhere/x']);
    expect(answer.code).toBe(64);
    expect(answer.stderr + answer.stdout).toMatch(/HOST:PORT/);
  });

  it('a port that is taken is named, with the flag that changes it', async () => {
    using directory = temporaryDirectory('port');
    const holder = createServer();
    const port = await freePort();
    await new Promise<void>((resolve) => holder.listen(port, '127.0.0.1', resolve));
    try {
      const answer = await run([
        'server',
        '--store',
        `file:${directory.path}/store`,
        '--http',
        `127.0.0.1:${port}`,
        '--grpc',
        '127.0.0.1:0',
      ]);
      expect(answer.code).not.toBe(0);
      expect(answer.stderr + answer.stdout).toMatch(new RegExp(`${port}[\\s\\S]*--http`));
    } finally {
      await new Promise<void>((resolve) => holder.close(() => resolve()));
    }
  });

  it('a store directory that another server uses is refused, and the first server goes on', async () => {
    using directory = temporaryDirectory('in-use');
    const store = `file:${directory.path}/store`;
    const server = await startServer(['--store', store]);
    try {
      const answer = await run([
        'server',
        '--store',
        store,
        '--http',
        '127.0.0.1:0',
        '--grpc',
        '127.0.0.1:0',
      ]);
      expect(answer.code).not.toBe(0);
      expect(answer.stderr + answer.stdout).toMatch(/in use|another/i);
      expect((await fetch(`http://${server.http}/readyz`)).status).toBe(200);
    } finally {
      await server.process.stop();
    }
  });

  it('a store directory that is a file is refused with its path', async () => {
    using directory = temporaryDirectory('not-a-directory');
    writeFileSync(`${directory.path}/store`, 'not a directory');
    const answer = await run([
      'server',
      '--store',
      `file:${directory.path}/store`,
      '--http',
      '127.0.0.1:0',
      '--grpc',
      '127.0.0.1:0',
    ]);
    expect(answer.code).not.toBe(0);
    expect(answer.stderr + answer.stdout).toContain(`${directory.path}/store`);
  });

  it('an etcd that is not there is named, within ten seconds', async () => {
    const port = await freePort();
    const answer = await run([
      'server',
      '--store',
      `etcd:http://127.0.0.1:${port}`,
      '--http',
      '127.0.0.1:0',
      '--grpc',
      '127.0.0.1:0',
    ]);
    expect(answer.code).not.toBe(0);
    expect(answer.stderr + answer.stdout).toContain(`127.0.0.1:${port}`);
  }, 15_000);

  it('a flag that does not exist is wrong usage', async () => {
    expect((await run(['server', '--sotre', 'file:x'])).code).toBe(64);
    expect((await run(['get', 'breakers', '--no-such-flag'])).code).toBe(64);
  });
});
