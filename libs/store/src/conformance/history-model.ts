import fc from 'fast-check';
import type { Change, ChangeBatch, Entry, Store, Write } from '../store.js';
import { put, record, remove, write, type Recording, type StoreFixture } from './fixture.conformance.js';

interface PlannedWrite {
  readonly team: number;
  readonly name: number;
  readonly deletes: boolean;
}

interface PlannedWatch {
  readonly team: number;
  /** When it begins, and after which earlier commit, as shares (0..1) of what is done then. */
  readonly begins: number;
  readonly after: number;
}

export interface HistoryPlan {
  readonly writers: readonly (readonly (readonly PlannedWrite[])[])[];
  readonly watches: readonly PlannedWatch[];
}

const teams = ['team', 'team-b', 'tea'];
const share = fc.double({ min: 0, max: 1, noNaN: true });
const plannedWrite = fc.record({
  team: fc.nat(teams.length - 1),
  name: fc.nat(3),
  deletes: fc.boolean(),
});

/** Several writers with commits of a few keys each, and watches that begin somewhere in between. */
export const historyPlan: fc.Arbitrary<HistoryPlan> = fc.record({
  writers: fc.array(
    fc.array(fc.array(plannedWrite, { minLength: 1, maxLength: 4 }), { minLength: 5, maxLength: 25 }),
    {
      minLength: 2,
      maxLength: 5,
    },
  ),
  watches: fc.array(fc.record({ team: fc.nat(teams.length - 1), begins: share, after: share }), {
    minLength: 2,
    maxLength: 6,
  }),
});

interface Commit {
  readonly revision: number;
  readonly writes: readonly Write[];
}

/** Runs a plan and answers, per watch, what it should have seen by the acknowledged commits alone, and what it saw. */
export async function runHistory(
  { store, observer }: StoreFixture,
  root: string,
  plan: HistoryPlan,
): Promise<{ expected: ChangeBatch[][]; seen: ChangeBatch[][] }> {
  const base = await store.revision();
  const commits: Commit[] = [];
  const total = plan.writers.reduce((sum, each) => sum + each.length, 0);
  const watches: { readonly prefix: string; readonly after: number; readonly recording: Recording }[] = [];
  const waiting = [...plan.watches].sort((a, b) => a.begins - b.begins);
  let begun = 0;
  const beginDueWatches = () => {
    while (waiting[0] !== undefined && waiting[0].begins * total <= commits.length) {
      const { team, after: from } = waiting[0];
      const after = commits[Math.floor(from * commits.length) - 1]?.revision ?? base;
      const prefix = `${root}/${teams[team]}/`;
      const watched = watches.length % 2 === 0 ? observer : store;
      watches.push({ prefix, after, recording: record(watched, prefix, after) });
      waiting.shift();
    }
  };
  const writer = async (by: Store, planned: HistoryPlan['writers'][number]) => {
    for (const each of planned) {
      beginDueWatches();
      begun += 1;
      // A key of its own gives every commit a revision of its own, also one that deletes what is not there.
      const writes = [...writesOf(root, each), put(`${root}/commits/${begun}`)];
      commits.push({ revision: await write(by, ...writes), writes });
    }
  };
  await Promise.all(plan.writers.map((planned, at) => writer(at % 2 === 0 ? store : observer, planned)));
  beginDueWatches();
  const history = replay(commits);
  const expected: ChangeBatch[][] = [];
  for (const { prefix, after, recording } of watches) {
    const suffix = suffixOf(history, prefix, after);
    expected.push(suffix);
    await recording.until(suffix.at(-1)?.revision ?? 0);
    recording.stop();
    await recording.ended;
  }
  return { expected, seen: watches.map(({ recording }) => recording.batches) };
}

function writesOf(root: string, planned: readonly PlannedWrite[]): Write[] {
  const byKey = new Map<string, Write>();
  for (const { team, name, deletes } of planned) {
    const key = `${root}/${teams[team]}/${name}`;
    byKey.set(key, deletes ? remove(key) : put(key, `${byKey.size}-${name}`));
  }
  return [...byKey.values()];
}

/** What the commits did, in the order of their revisions. */
function replay(commits: readonly Commit[]): ChangeBatch[] {
  const entries = new Map<string, Entry>();
  return [...commits]
    .sort((a, b) => a.revision - b.revision)
    .map(({ revision, writes }) => ({
      revision,
      changes: writes.flatMap((each) => change(entries, each, revision)),
    }));
}

function change(entries: Map<string, Entry>, write: Write, revision: number): Change[] {
  const previous = entries.get(write.key);
  if (write.kind === 'delete') {
    entries.delete(write.key);
    return previous === undefined ? [] : [{ kind: 'delete', key: write.key, previous }];
  }
  const { key, value } = write;
  const entry = { key, value, createRevision: previous?.createRevision ?? revision, modRevision: revision };
  entries.set(key, entry);
  return [{ kind: 'put', entry, previous }];
}

function suffixOf(history: readonly ChangeBatch[], prefix: string, after: number): ChangeBatch[] {
  return history
    .filter(({ revision }) => revision > after)
    .map(({ revision, changes }) => ({
      revision,
      changes: changes.filter((each) => keyOf(each).startsWith(prefix)),
    }))
    .filter(({ changes }) => changes.length > 0);
}

function keyOf(change: Change): string {
  return change.kind === 'put' ? change.entry.key : change.key;
}
