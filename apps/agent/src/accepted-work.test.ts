import { describe, expect, it } from 'vitest';
import { AcceptedWork, sumOf } from './accepted-work.js';

describe('the work a side has taken on', () => {
  it('is refused before its begin and after its stop, each with its reason', () => {
    const work = new AcceptedWork();
    expect(work.refusal()).toBe('starting');
    work.begin();
    expect(work.refusal()).toBeUndefined();
    work.stop();
    expect(work.refusal()).toBe('draining');
    work.begin();
    expect(work.refusal()).toBe('draining');
    expect(work.counts()).toEqual({ accepted: 0, completed: 0, refused: 3, unfinished: 0 });
  });

  it('S10: is waited for until its last call ends, each counted once', async () => {
    const work = new AcceptedWork();
    work.begin();
    const [first, second] = [work.take(), work.take()];
    work.stop();
    let over = false;
    const settled = work.settled(60_000).then(() => (over = true));
    first();
    first();
    await Promise.resolve();
    expect([over, work.inFlight]).toEqual([false, 1]);
    second();
    await settled;
    expect(work.counts()).toEqual({ accepted: 2, completed: 2, refused: 0, unfinished: 0 });
  });

  it('S10: is waited for no longer than is said, and then told as unfinished', async () => {
    const work = new AcceptedWork();
    work.begin();
    work.take();
    await work.settled(1);
    expect(work.counts()).toMatchObject({ accepted: 1, completed: 0, unfinished: 1 });
    await new AcceptedWork().settled(60_000);
    expect(sumOf([work.counts(), work.counts()])).toMatchObject({ accepted: 2, unfinished: 2 });
  });
});
