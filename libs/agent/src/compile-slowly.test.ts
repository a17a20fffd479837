import type { Resource } from '@bulwark/protocol';
import { expect, it } from 'vitest';
import { compileSlowly } from './compile-slowly.js';

it('a large update is compiled in slices, and other work runs between them', async () => {
  const resources: Resource[] = Array.from({ length: 100 }, (_, index) => ({
    name: { kind: 'resiliencepolicies', namespace: 'shop', name: `p${index}` },
    uid: 'u',
    generation: 1,
    createdAtMs: 1,
    object: Buffer.from(String(index)),
  }));
  let nowMs = 0;
  let longestMs = 0;
  let turnBeganMs = 0;
  let over = false;
  const otherWork = () => {
    longestMs = Math.max(longestMs, nowMs - turnBeganMs);
    turnBeganMs = nowMs;
    if (!over) setImmediate(otherWork);
  };
  setImmediate(otherWork);
  const compile = await compileSlowly<string>(
    resources,
    (raw) => {
      nowMs += 1;
      return raw.object === '7' ? { ok: false, reason: 'seven' } : { ok: true, compiled: raw.object };
    },
    () => nowMs,
  );
  over = true;
  expect(longestMs).toBeGreaterThan(0);
  expect(longestMs).toBeLessThanOrEqual(8);
  const of = (index: number) =>
    compile({ ...resources[index]!, name: resources[index]!.name!, object: String(index) });
  expect(of(8)).toEqual({ ok: true, compiled: '8' });
  expect(of(7)).toEqual({ ok: false, reason: 'seven' });
  expect(nowMs).toBe(100);
});
