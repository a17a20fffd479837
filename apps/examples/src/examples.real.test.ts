import { startProcess } from '@bulwark/testing';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { examples } from './examples.js';

const main = fileURLToPath(new URL('../dist/main.js', import.meta.url));

async function run(...args: string[]) {
  const process_ = await startProcess({ command: process.execPath, args: [main, ...args] });
  const { code } = await process_.exited;
  return { code, stdout: process_.stdout(), stderr: process_.stderr() };
}

/** What each example must have told, in this order. */
const STORIES: Record<string, RegExp> = {
  fetch: new RegExp(
    [
      'all is well: 200 .* with 1 request',
      'one failure is retried: 200 .*attempt 2.* with 2 request',
      'last good answer stands in: 200 .* with 2 request',
      'Bulwark-Degraded: last-good.*reason="failure"',
      'opens the breaker: 200 .* with 1 request',
      'left alone: 200 .* with 0 request',
      'reason="breaker-open"',
      'probe succeeds: 200 .* with 1 request',
    ].join('[^]*'),
  ),
  undici: new RegExp(
    [
      'an answer: 200 "12.50" with 1 request',
      'another attempt: 200 "12.50" with 2 request',
      'not repeated: 200 "broke off .* with 1 request',
      'refused at once: 503 "Bulwark-Rejected: bulkhead-full" with 0 request',
      'that hangs have ended: 504 "no answer in time" with 2 request',
      'in flight now: 0',
    ].join('[^]*'),
  ),
  grpc: new RegExp(
    [
      'all is well: OK .*attempt 1, within 3 s.* with 1 call',
      'one failure is retried: OK .*attempt 2, within 3 s.* with 2 call',
      'never repeated: "2 books", then gone with 1 call',
      'last good answer stands in: OK .*bulwark-degraded: last-good;.*reason="failure".* with 2 call',
      'no answer to remember: UNAVAILABLE "" bulwark-rejected: breaker-open with 0 call',
      'probe succeeds: OK .* with 1 call',
    ].join('[^]*'),
  ),
  nest: new RegExp(
    [
      'all is well: 200 "page with \\["book"\\]"',
      'the deadline of the policy and the deadline of the caller',
      'says so: 200 "page with \\[\\]", static;upstream="recommendations";reason="failure"',
      'a guarded method: 200 "order 7 is fine"',
      'fails as it fails: 500\\n',
      'its breaker is open: 503, breaker-open',
    ].join('[^]*'),
  ),
};

describe('the examples', () => {
  it('are listed when none is named, or one that is not there, which is wrong usage', async () => {
    for (const [args, problem] of [
      [[], 'Which example?'],
      [['nothing'], 'There is no example "nothing"'],
    ] as const) {
      const { code, stdout, stderr } = await run(...args);
      expect([code, stdout]).toEqual([64, '']);
      expect(stderr).toContain(problem);
      for (const { name, shows } of examples) expect(stderr).toContain(`${name.padEnd(8)} ${shows}`);
    }
  });

  it.each(examples.map(({ name }) => name))('%s tells its story and ends with 0', async (name) => {
    const { code, stdout, stderr } = await run(name);
    expect(stderr).toBe('');
    expect(stdout).toMatch(STORIES[name] ?? /there is no story for this example in its test/);
    expect(code).toBe(0);
  });
});
