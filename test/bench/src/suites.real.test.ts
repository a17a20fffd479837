import { startProcess } from '@bulwark/testing';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { suites } from './suites.js';

const main = fileURLToPath(new URL('../dist/main.js', import.meta.url));

async function bench(...args: string[]) {
  // The newest 1 MiB is far more than any suite writes.
  const process = await startProcess({ command: 'node', args: [main, ...args] });
  const { code } = await process.exited;
  return { code, stdout: process.stdout(), stderr: process.stderr() };
}

it.each(Object.keys(suites))(
  'runs the whole suite %s in short and prints the contract’s lines',
  async (name) => {
    const { code, stdout, stderr } = await bench(name, '--quick', '--json');
    expect(code, `${stdout}\n${stderr}`).toBe(0);
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    for (const line of lines) {
      expect(Object.keys(line).join()).toBe('suite,name,value,unit,ratioTo,ratio,reach,ok,runs');
      expect(line).toMatchObject({ suite: name, ok: true, value: expect.any(Number) as number });
      expect(line['runs']).toBeGreaterThanOrEqual(1);
    }
    const names = lines.map((line) => line['name']);
    expect(new Set(names).size).toBe(names.length);
  },
);

it('prints an aligned table, and at its end what it was measured on', async () => {
  const { code, stdout, stderr } = await bench('engine', '--quick');
  expect(code, stderr).toBe(0);
  expect(stdout).toMatch(/^ +median +ratio/m);
  expect(stdout.trimEnd().split('\n').at(-1)).toMatch(/^Measured on Node v[\d.]+, \d+ CPUs, \w+ \w+\.$/);
});

it('lists the suites for a name that is none, and takes no rounds that are none', async () => {
  const unknown = await bench('no-such-suite');
  expect(unknown.code).toBe(64);
  expect(unknown.stdout).toBe('');
  for (const [name, { about }] of Object.entries(suites)) {
    expect(unknown.stderr).toMatch(new RegExp(`^ +${name} +${about}$`, 'm'));
  }
  expect((await bench()).code).toBe(64);
  expect((await bench('degrade', '--rounds', '0')).code).toBe(64);
});
