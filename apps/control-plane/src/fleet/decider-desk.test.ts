import { EventEmitter } from 'node:events';
import { type ForwardRequest, Report, Verdict, type ForwardResponse } from '@bulwark/protocol';
import { beforeEach, describe, expect, it } from 'vitest';
import type { DeciderHost } from './decider-host.js';
import { DeciderDesk } from './decider-desk.js';
import { ForwardStream, type ForwardCall } from './forward-stream.js';
import { VerdictBoard } from './verdict-board.js';
import type { VerdictFanout } from './verdict-fanout.js';

const AGENT = { namespace: 'shop', service: 'web', instance: 'a', incarnation: 'i', labels: {} };
const KEY = { namespace: 'shop', policy: 'pay', key: 'target' };

/** The stream of another replica. */
class FakeCall extends EventEmitter {
  readonly sent: ForwardResponse[] = [];
  takes = true;
  write(response: ForwardResponse): boolean {
    this.sent.push(response);
    return this.takes;
  }
  end(): void {
    this.emit('close');
  }
  say(message: NonNullable<ForwardRequest['message']>): void {
    this.emit('data', { replica: 'r', message });
  }
  get call(): ForwardCall {
    return this as unknown as ForwardCall;
  }
}

const up = { $case: 'agentUp', value: { agent: AGENT } } as const;
const down = { $case: 'agentDown', value: { agent: AGENT } } as const;
const report = (sequence: number) =>
  ({
    $case: 'report',
    value: { agent: AGENT, report: Report.fromPartial({ incarnation: 'i', sequence, coversMs: 10 }) },
  }) as const;

describe('an agent that moved between replicas', () => {
  let heard: string[];
  let desk: DeciderDesk;

  beforeEach(() => {
    heard = [];
    const host = {
      agentUp: () => heard.push('up'),
      agentDown: () => heard.push('down'),
      report: (_: unknown, { sequence }: { sequence: number }) => heard.push(`report ${sequence}`),
      stop: () => undefined,
    };
    desk = new DeciderDesk({
      board: new VerdictBoard(),
      fanout: {} as unknown as VerdictFanout,
      createHost: () => host as unknown as DeciderHost,
      deliver: (update) => update,
      counted: () => undefined,
      transition: () => undefined,
    });
  });

  function replica(): FakeCall {
    const call = new FakeCall();
    desk.accept(call.call);
    return call;
  }

  it('belongs to the later one, whatever the former one still says', () => {
    const [former, later] = [replica(), replica()];
    former.say(up);
    later.say(up);
    former.say(report(1));
    former.say(down);
    later.say(report(2));
    expect(heard).toEqual(['up', 'up', 'report 2']);
  });

  it('is heard again after the former one claimed it once more and then missed it', () => {
    const [former, later] = [replica(), replica()];
    later.say(up);
    former.say(up);
    former.say(down);
    later.say(report(2));
    later.say(report(3));
    expect(heard).toEqual(['up', 'up', 'down', 'up', 'report 2', 'report 3']);
  });
});

it('a removal waits for a stream that is blocked, and goes when its verdict comes back', () => {
  const fake = new FakeCall();
  const stream = new ForwardStream({
    call: fake.call,
    link: { agentUp: () => undefined, agentDown: () => undefined, report: () => undefined },
    counted: () => undefined,
  });
  const verdict = Verdict.fromPartial({ key: KEY });
  const other = { ...KEY, policy: 'other' };
  fake.takes = false;
  stream.broadcast({ verdicts: [verdict], removed: [] });
  stream.broadcast({ verdicts: [], removed: [KEY, other] });
  stream.broadcast({ verdicts: [Verdict.fromPartial({ key: other })], removed: [] });
  fake.emit('drain');
  expect(fake.sent).toHaveLength(2);
  expect(fake.sent[1]?.message).toMatchObject({
    $case: 'verdicts',
    value: { verdicts: [{ key: other }], removed: [KEY] },
  });
});
