import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { FakeServer } from '../testing/fake-server.js';
import { runCli } from '../testing/run-cli.js';

const fileText = (path: string) => readFileSync(new URL(`../../../../${path}`, import.meta.url), 'utf8');

it.each([
  ['the demo', () => fileText('apps/demo/policies/demo.yaml')],
  ['the README', () => /```yaml\n(apiVersion: .*?)```/s.exec(fileText('README.md'))?.[1] ?? ''],
])('the policies of %s are applied without a warning', async (_, text) => {
  const server = await FakeServer.start();
  const stdin = text();
  const { code, stdout, stderr } = await runCli(['apply', '-f', '-', '--server', server.url], { stdin });
  await server.stop();
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toContain('/recommendations created\n');
});
