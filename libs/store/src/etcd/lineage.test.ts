import { expect, test } from 'vitest';
import { Lineage, toRevision } from './lineage.js';

function header(revision: number, raftTerm = 2, clusterId = '11135400029416396562') {
  return { cluster_id: clusterId, member_id: '1', revision: String(revision), raft_term: String(raftTerm) };
}

function broken(...answers: ReturnType<typeof header>[]): boolean {
  const lineage = new Lineage();
  const { ended } = lineage;
  for (const each of answers) lineage.observe(each, lineage.floor());
  return ended.aborted;
}

test('a store that goes on is the same: equal or newer revisions, later terms', () => {
  expect(broken(header(5), header(5), header(9), header(9, 3))).toBe(false);
});

test.each([
  ['an older revision', [header(9), header(8)]],
  ['an earlier raft term', [header(9, 3), header(10, 2)]],
  ['another cluster', [header(9), header(10, 2, '4744177759505961000')]],
])('%s ends the lineage', (_, answers) => {
  expect(broken(...answers)).toBe(true);
});

test('an answer that was overtaken by a newer one is no step back', () => {
  const lineage = new Lineage();
  const { ended } = lineage;
  const asked = lineage.floor();
  lineage.observe(header(9, 3), lineage.floor());
  expect(lineage.observe(header(8, 2), asked)).toBe(8);
  expect(ended.aborted).toBe(false);
});

test('the next lineage begins with what the restored store says, and can end, too', () => {
  const lineage = new Lineage();
  lineage.observe(header(100), lineage.floor());
  const late = lineage.floor();
  lineage.observe(header(50), lineage.floor());
  const { ended } = lineage;
  expect(ended.aborted).toBe(false);
  lineage.observe(header(51), late);
  lineage.observe(header(60), lineage.floor());
  expect(ended.aborted).toBe(false);
  lineage.observe(header(55), lineage.floor());
  expect(ended.aborted).toBe(true);
  expect(ended.reason).toMatchObject({ code: 'compacted' });
});

test('a revision that cannot be counted exactly is refused', () => {
  expect(toRevision('9007199254740991')).toBe(Number.MAX_SAFE_INTEGER);
  expect(() => toRevision('9007199254740993')).toThrow(/9007199254740993/);
});
