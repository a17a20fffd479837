import type { Resource, Update } from '@bulwark/protocol';
import { describe, expect, it } from 'vitest';
import { applyUpdate, emptySnapshot, type Compile, type Snapshot } from './snapshot.js';

const compile: Compile<string> = (resource) => {
  if (resource.object === 'throws') throw new Error('defect');
  return resource.object.startsWith('bad')
    ? { ok: false, reason: `refused ${resource.object}` }
    : { ok: true, compiled: resource.object.toUpperCase() };
};
const resource = (name: string, generation: number, object: string): Resource => ({
  name: { kind: 'resiliencepolicies', namespace: 'shop', name },
  uid: `uid-${name}`,
  generation,
  object: Buffer.from(object),
  createdAtMs: 1,
});
const update = (revision: number, parts: Partial<Update>): Update => ({
  version: { era: 1, revision },
  nonce: `n${revision}`,
  full: false,
  resources: [],
  removed: [],
  serviceAgents: 1,
  traceparent: '',
  ...parts,
});
const contents = (snapshot: Snapshot<string>) =>
  [...snapshot.resources.values()].map((held) => `${held.name.name}@${held.generation}=${held.compiled}`);
const first = () =>
  applyUpdate<string>(
    emptySnapshot,
    update(5, { full: true, resources: [resource('a', 1, 'x'), resource('b', 1, 'y')] }),
    compile,
  ).snapshot;

describe('an update of the snapshot', () => {
  it('takes the good resources and keeps the former generation of a bad one', () => {
    const applied = applyUpdate(
      first(),
      update(6, { resources: [resource('a', 2, 'bad'), resource('b', 2, 'z'), resource('c', 1, 'throws')] }),
      compile,
    );
    expect(contents(applied.snapshot)).toEqual(['a@1=X', 'b@2=Z']);
    expect(applied.snapshot.version).toEqual({ era: 1, revision: 6 });
    expect(applied.statuses.map((status) => [status.name?.name, status.accepted, status.reason])).toEqual([
      ['a', false, 'refused bad'],
      ['b', true, ''],
      ['c', false, 'defect'],
    ]);
  });

  it('when full removes what it does not name, and when a delta what it says is removed', () => {
    const full = applyUpdate(first(), update(6, { full: true, resources: [resource('b', 1, 'y')] }), compile);
    expect(contents(full.snapshot)).toEqual(['b@1=Y']);
    const delta = applyUpdate(
      first(),
      update(6, { removed: [{ kind: 'resiliencepolicies', namespace: 'shop', name: 'b' }] }),
      compile,
    );
    expect(contents(delta.snapshot)).toEqual(['a@1=X']);
  });

  it('keeps the former generation of a bad resource in a full update too', () => {
    const applied = applyUpdate(
      first(),
      update(6, { full: true, resources: [resource('a', 2, 'bad')] }),
      compile,
    );
    expect(contents(applied.snapshot)).toEqual(['a@1=X']);
  });

  it('that is older is refused whole, and an equal one is taken', () => {
    const older = applyUpdate(
      first(),
      update(4, { full: true, resources: [resource('a', 9, 'z')] }),
      compile,
    );
    expect(older.stale).toBe(true);
    expect(contents(older.snapshot)).toEqual(['a@1=X', 'b@1=Y']);
    expect(older.statuses[0]).toMatchObject({ accepted: false });
    expect(older.statuses[0]?.reason).toContain('revision 5');
    expect(applyUpdate(first(), update(5, {}), compile).stale).toBe(false);
    const newEra = applyUpdate(
      first(),
      { ...update(1, { full: true }), version: { era: 2, revision: 1 } },
      compile,
    );
    expect(newEra.stale).toBe(false);
    expect(contents(newEra.snapshot)).toEqual([]);
  });

  it('cuts a reason to 1,024 characters', () => {
    const long = applyUpdate(
      first(),
      update(6, { resources: [resource('a', 2, `bad${'x'.repeat(5_000)}`)] }),
      compile,
    );
    expect(long.statuses[0]?.reason).toHaveLength(1_024);
  });
});
