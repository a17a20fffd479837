import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeServer } from '../testing/fake-server.js';
import { runCli } from '../testing/run-cli.js';
import { policyYaml, sampleAgent } from '../testing/samples.js';

describe('bulwark delete', () => {
  let server: FakeServer;
  const del = (...args: string[]) => runCli(['delete', ...args, '-n', 'shop', '--server', server.url]);
  const left = () =>
    ['a', 'b', 'c'].filter((name) => server.object('resiliencepolicies', name) !== undefined);

  beforeEach(async () => {
    server = await FakeServer.start();
    for (const name of ['a', 'b', 'c']) {
      server.put('resiliencepolicies', {
        kind: 'ResiliencePolicy',
        metadata: { name },
        spec: { target: { service: name } },
      });
    }
    server.put('agents', sampleAgent('1'));
  });

  afterEach(() => server.stop());

  it('deletes by name, and tells what is not there without stopping', async () => {
    const { code, stdout, stderr } = await del('policy', 'a', 'no', 'b');
    expect(stdout).toBe(
      'resiliencepolicy.bulwark.dev "a" deleted\nresiliencepolicy.bulwark.dev "b" deleted\n',
    );
    expect([code, stderr]).toEqual([
      1,
      'Error from server (NotFound): resiliencepolicies.bulwark.dev "no" not found\n',
    ]);
    expect(left()).toEqual(['c']);
    expect(await del('policy/no', '--ignore-not-found')).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  it('deletes what files name', async () => {
    const text = `${policyYaml('a')}---\n${policyYaml('c')}`;
    await runCli(['delete', '-f', '-', '--server', server.url], { stdin: text });
    expect(left()).toEqual(['b']);
  });

  it('many at once need a yes where nobody can be asked', async () => {
    const { code, stderr } = await del('policies', '--all');
    expect([code, stderr]).toEqual([1, expect.stringMatching(/3 objects[\s\S]*--yes/)]);
    expect(left()).toEqual(['a', 'b', 'c']);
    expect((await del('policies', '--all', '--yes')).code).toBe(0);
    expect(left()).toEqual([]);
    expect(await del('policies', '--all', '--yes')).toMatchObject({
      code: 0,
      stderr: 'No resources found in shop namespace.\n',
    });
  });

  it('on a terminal it asks, naming what goes and who loses it; no answer but yes deletes', async () => {
    const args = ['delete', 'policies', '--all', '-n', 'shop', '--server', server.url];
    expect(await runCli(args, { terminal: true })).toEqual({
      code: 1,
      stdout: '',
      stderr:
        '  resiliencepolicy/a\n  resiliencepolicy/b\n  resiliencepolicy/c\n' +
        'Delete 3 objects in namespace shop? 1 agent there loses their guard at once. [y/N] Nothing was deleted.\n',
    });
    expect(left()).toEqual(['a', 'b', 'c']);
    expect((await runCli(args, { terminal: true, answer: true })).code).toBe(0);
    expect(left()).toEqual([]);
  });

  it('--dry-run deletes nothing, and asks the server in the query and in the body', async () => {
    expect((await del('policy', 'a', '--dry-run=server')).stdout).toMatch(/"a" deleted \(server dry run\)/);
    expect(server.seen.at(-1)).toMatchObject({
      method: 'DELETE',
      query: { dryRun: 'All' },
      body: { dryRun: ['All'] },
    });
    expect((await del('policy', 'a', '--dry-run=client')).stdout).toMatch(/"a" deleted \(dry run\)/);
    expect(left()).toEqual(['a', 'b', 'c']);
  });

  it.each([[['policies']], [['policy', 'a', '--all']], [[]]])('%j is wrong usage', async (args) => {
    expect((await del(...args)).code).toBe(64);
    expect(left()).toEqual(['a', 'b', 'c']);
  });
});
