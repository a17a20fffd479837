import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeServer, status } from '../testing/fake-server.js';
import { runCli } from '../testing/run-cli.js';
import { policyYaml } from '../testing/samples.js';
import { unifiedDiff } from './unified.js';

describe('bulwark diff', () => {
  let server: FakeServer;
  const command = (verb: string, text: string, ...args: string[]) =>
    runCli([verb, '-f', '-', ...args, '--server', server.url], { stdin: text });

  beforeEach(async () => {
    server = await FakeServer.start();
  });

  afterEach(() => server.stop());

  it('is silent with exit code 0 when applying would change nothing', async () => {
    await command('apply', policyYaml('a'));
    expect(await command('diff', policyYaml('a'))).toEqual({ code: 0, stdout: '', stderr: '' });
    const reordered = `${policyYaml('a').replace(/spec:[\s\S]*/, '')}spec:\n  timeout: { total: 1s }\n  target: { service: a }\n`;
    expect((await command('diff', reordered)).code).toBe(0);
  });

  it('shows what would change as a unified diff with exit code 1, and changes nothing', async () => {
    await command('apply', policyYaml('a', '  timeout: { total: 1s }\n  mode: Shadow'));
    const writes = server.writes.length;
    const { code, stdout, stderr } = await command('diff', policyYaml('a', '  timeout: { total: 2s }'));
    expect(stdout).toBe(
      [
        '--- live/shop/resiliencepolicy.bulwark.dev/a',
        '+++ stdin:1/shop/resiliencepolicy.bulwark.dev/a',
        '@@ -4,8 +4,7 @@',
        '   name: a',
        '   namespace: shop',
        ' spec:',
        '-  mode: Shadow',
        '   target:',
        '     service: a',
        '   timeout:',
        '-    total: 1s',
        '+    total: 2s',
        '',
      ].join('\n'),
    );
    expect([code, stderr, server.writes.length]).toEqual([1, '', writes]);
  });

  it('a policy that is not there yet is all new', async () => {
    const { code, stdout } = await command('diff', policyYaml('a'));
    expect(code).toBe(1);
    expect(stdout).toMatch(/^--- \/dev\/null\n\+\+\+ .*\n@@ -0,0 \+1,10 @@\n(\+.*\n){10}$/);
  });

  it('a bad file, a refusal and a server that is away are exit code 2, on stderr', async () => {
    expect(await command('diff', policyYaml('a').replace('1s', '1'))).toMatchObject({ code: 2, stdout: '' });
    server.intercept = () => status(403, 'Forbidden', 'no');
    expect(await command('diff', policyYaml('a'))).toEqual({
      code: 2,
      stdout: '',
      stderr: 'Error from server (Forbidden): no\n',
    });
    await server.stop();
    expect(await command('diff', policyYaml('a'))).toMatchObject({ code: 2, stdout: '' });
    expect((await runCli(['diff'])).code).toBe(64);
    server = await FakeServer.start();
  });
});

describe('unified diffs', () => {
  const lines = (...all: (string | number)[]) => all.map((line) => `${line}\n`).join('');

  it('changes far apart are hunks of their own, near ones are one', () => {
    const before = lines(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    const after = lines('one', 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13);
    expect(unifiedDiff(before, after)).toBe(
      lines(
        '@@ -1,4 +1,4 @@',
        '-1',
        '+one',
        ' 2',
        ' 3',
        ' 4',
        '@@ -10,3 +10,4 @@',
        ' 10',
        ' 11',
        ' 12',
        '+13',
      ),
    );
    expect(unifiedDiff(lines(1, 2, 3), lines(1, 3)).split('\n')[0]).toBe('@@ -1,3 +1,2 @@');
    expect(unifiedDiff(lines(1), lines(2))).toBe(lines('@@ -1 +1 @@', '-1', '+2'));
    expect(unifiedDiff(lines(1), '')).toBe(lines('@@ -1 +0,0 @@', '-1'));
    expect(unifiedDiff(before, before)).toBe('');
  });
});

it('texts of tens of thousands of lines are compared in bounded time and memory', () => {
  const text = (mark: string) => Array.from({ length: 60_000 }, (_, line) => `${mark}${line}\n`).join('');
  const diff = unifiedDiff(`same\n${text('a')}`, `same\n${text('b')}`);
  expect(diff.startsWith('@@ -1,60001 +1,60001 @@\n same\n-a0\n')).toBe(true);
  expect(diff.endsWith('+b59999\n')).toBe(true);
});
