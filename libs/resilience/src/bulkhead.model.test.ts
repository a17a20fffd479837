import { agree, checkModel, commandsOf } from '@bulwark/testing';
import fc from 'fast-check';
import { test } from 'vitest';
import { Bulkhead, type Waiter } from './index.js';

/** What a call does in the moment it is given its slot. */
type Reaction = 'stays' | 'ends' | 'ends-and-brings-one' | 'brings-one' | 'cancels-the-next';

class Call implements Waiter {
  nextWaiter: Waiter | undefined;
  previousWaiter: Waiter | undefined;
  queued = false;

  constructor(
    readonly name: number,
    readonly reaction: Reaction,
    private readonly given: (call: Call) => void,
  ) {}

  granted(): void {
    this.given(this);
  }
}

/**
 * A bulkhead and the obvious one beside it: a set of those inside and a list of those who wait. The list is the judge of
 * who may come in: each `granted` must be the head of the list at that moment, with room inside.
 */
class Pair {
  readonly inside: Call[] = [];
  queue: Call[] = [];
  private named = 0;
  private readonly bulkhead: Bulkhead;

  constructor(
    private max: number,
    private maxQueued: number,
  ) {
    this.bulkhead = new Bulkhead({ maxConcurrent: max, maxQueued });
  }

  arrive(reaction: Reaction): void {
    this.named += 1;
    const call = new Call(this.named, reaction, (one) => this.granted(one));
    const room = this.queue.length === 0 && this.inside.length < this.max;
    const expected = room ? 'taken' : this.queue.length < this.maxQueued ? 'queued' : 'full';
    // The list first: what happens inside `granted` sees it as it is.
    if (expected === 'taken') this.inside.push(call);
    if (expected === 'queued') this.queue.push(call);
    agree(this.bulkhead.acquire(call), expected, `arrival of ${call.name}`);
  }

  end(pick: number): void {
    if (this.inside.length === 0) return;
    this.inside.splice(pick % this.inside.length, 1);
    this.bulkhead.release();
  }

  cancel(pick: number): void {
    const call = this.queue[pick % Math.max(1, this.queue.length)];
    if (call === undefined) return;
    this.queue = this.queue.filter((other) => other !== call);
    agree(this.bulkhead.cancel(call), true, 'a cancellation in the queue');
    agree(this.bulkhead.cancel(call), false, 'the same again');
  }

  update(max: number, maxQueued: number): void {
    this.max = max;
    this.maxQueued = maxQueued;
    this.bulkhead.update({ maxConcurrent: max, maxQueued });
  }

  /** Between commands: the numbers agree, and nobody waits while there is room. */
  check(): void {
    agree(this.bulkhead.inFlight, this.inside.length, 'in flight');
    agree(this.bulkhead.waiting, this.queue.length, 'waiting');
    agree(this.queue.length > 0 && this.inside.length < this.max, false, 'someone waits beside a free slot');
    agree(this.bulkhead.free, this.queue.length === 0 && this.inside.length < this.max, 'free');
  }

  private granted(call: Call): void {
    agree(call.name, this.queue.shift()?.name ?? -1, 'the head of the queue');
    agree(this.inside.length < this.max, true, 'a slot within the limit');
    agree(this.bulkhead.cancel(call), false, 'a cancellation of who has a slot');
    this.inside.push(call);
    const { reaction } = call;
    if (reaction.startsWith('ends')) {
      this.inside.splice(this.inside.indexOf(call), 1);
      this.bulkhead.release();
    }
    if (reaction.endsWith('brings-one')) this.arrive('stays');
    if (reaction === 'cancels-the-next') this.cancel(0);
  }
}

const reaction = fc.constantFrom<Reaction>(
  'stays',
  'stays',
  'stays',
  'ends',
  'ends-and-brings-one',
  'brings-one',
  'cancels-the-next',
);
const command = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('arrive' as const), reaction }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('end' as const), pick: fc.nat(50) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('cancel' as const), pick: fc.nat(50) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('update' as const),
      max: fc.integer({ min: 1, max: 5 }),
      queue: fc.nat(6),
    }),
  },
);

test('a bulkhead agrees with a list: first come first served, whoever leaves, whatever happens while a slot is given', () => {
  checkModel(
    fc.property(
      fc.integer({ min: 1, max: 4 }),
      fc.nat(6),
      commandsOf(command, 40),
      (max, maxQueued, commands) => {
        const pair = new Pair(max, maxQueued);
        for (const step of commands) {
          if (step.do === 'arrive') pair.arrive(step.reaction);
          else if (step.do === 'end') pair.end(step.pick);
          else if (step.do === 'cancel') pair.cancel(step.pick);
          else pair.update(step.max, step.queue);
          pair.check();
        }
        for (let left = pair.inside.length + pair.queue.length; left > 0; left -= 1) pair.end(0);
        while (pair.inside.length > 0) pair.end(0);
        pair.check();
        agree(pair.queue.length, 0, 'left waiting at the end');
      },
    ),
  );
});
