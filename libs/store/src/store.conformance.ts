import { afterEach, beforeEach, describe } from 'vitest';
import { describeBounds } from './conformance/bounds.conformance.js';
import { describeClosing } from './conformance/closing.conformance.js';
import { describeCommits } from './conformance/commit.conformance.js';
import type { OpenStoreFixture, StoreFixture } from './conformance/fixture.conformance.js';
import { describeLeases } from './conformance/lease.conformance.js';
import { describeReads } from './conformance/read.conformance.js';
import { describeWatches } from './conformance/watch.conformance.js';

export type { OpenStoreFixture, StoreFixture } from './conformance/fixture.conformance.js';

/** The contract of the store port as tests; every adapter runs it. Each test gets a store of its own from `open`. */
export function describeStore(name: string, open: OpenStoreFixture): void {
  describe(`${name} keeps the store's contract`, () => {
    let fixture: StoreFixture | undefined;
    beforeEach(async () => {
      fixture = await open();
    });
    afterEach(async () => {
      await fixture?.dispose();
      fixture = undefined;
    });
    const get = () => {
      if (fixture === undefined) throw new Error('No store outside of a test');
      return fixture;
    };
    describeReads(get);
    describeCommits(get);
    describeWatches(get);
    describeLeases(get);
    describeBounds(get);
    describeClosing(get);
  });
}
