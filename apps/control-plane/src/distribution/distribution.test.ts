import { Hello, type SnapshotVersion } from '@bulwark/protocol';
import { createLogger } from '@bulwark/telemetry';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AgentRegistry } from './agent-registry.js';
import { Distribution, type DistributionOptions, type StreamPort } from './distribution.js';
import type { Refused } from './hello-rules.js';
import { UpdateEncoder } from './update-bytes.js';

class FakeStream implements StreamPort {
  alive = true;
  ended: Refused | undefined;
  handler: ReturnType<Distribution['open']> | undefined;
  write(): boolean {
    return true;
  }
  close(details: string): void {
    this.end({ code: status.UNAVAILABLE, details });
  }
  end(refused: Refused): void {
    if (!this.alive) return;
    this.alive = false;
    this.ended = refused;
    this.handler?.ended();
  }
}

let registry: AgentRegistry;
let confirmed: (answer: 'reached') => void;
let ups: number;
let downs: number;
let distribution: Distribution;

beforeEach(() => {
  registry = new AgentRegistry();
  ups = 0;
  downs = 0;
  const confirmation = new Promise<'reached'>((resolve) => (confirmed = resolve));
  const options = {
    replica: 'one',
    catalog: { loaded: true, revision: 5, of: () => new Map(), listen: () => undefined },
    mirror: { confirm: () => confirmation },
    era: { loaded: true, current: 1, listen: () => undefined },
    registry,
    encoder: new UpdateEncoder('x'),
    maxAgents: 1,
    logger: createLogger({ name: 'test', level: 'silent' }),
    metrics: { acknowledged: () => undefined, refusedResources: () => undefined },
    listener: { up: () => (ups += 1), down: () => (downs += 1), report: () => undefined },
    place: () => ({ index: 0, count: 1 }),
    serviceAgentsElsewhere: () => 0,
  };
  distribution = new Distribution(options as unknown as DistributionOptions);
});

afterEach(() => vi.useRealTimers());

function connect(hello: Partial<Hello>, held?: SnapshotVersion): FakeStream {
  const stream = new FakeStream();
  stream.handler = distribution.open(stream);
  const value = Hello.fromPartial({
    namespace: 'shop',
    service: 'web',
    instance: 'a',
    incarnation: 'one',
    protocol: 1,
    ...hello,
    ...(held === undefined ? {} : { held }),
  });
  stream.handler.message({ message: { $case: 'hello', value } });
  return stream;
}

describe('streams that were looked into at the same time', () => {
  const ahead = { era: 1, revision: 9 };

  it('of one agent do not both become its session: the newest stays', async () => {
    const [first, second] = [connect({ connection: 1 }, ahead), connect({ connection: 2 }, ahead)];
    confirmed('reached');
    await vi.waitFor(() => expect(first.alive && second.alive).toBe(false));
    expect([first.alive, second.alive]).toEqual([false, true]);
    expect([registry.size, [...registry.of('shop')].length, ups, downs]).toEqual([1, 1, 2, 1]);
    second.close('done');
    expect([registry.size, registry.serviceAgents('shop', 'web')]).toEqual([0, 0]);
  });

  it('are not more than the replica takes', async () => {
    const [first, second] = [connect({ instance: 'a' }, ahead), connect({ instance: 'b' }, ahead)];
    confirmed('reached');
    await vi.waitFor(() => expect(second.alive).toBe(false));
    expect([first.alive, second.ended?.code]).toEqual([true, status.RESOURCE_EXHAUSTED]);
  });

  it('are not taken when the replica began to leave meanwhile', async () => {
    const late = connect({}, ahead);
    distribution.drain(100);
    confirmed('reached');
    await vi.waitFor(() => expect(late.alive).toBe(false));
    expect([late.ended?.code, registry.size]).toEqual([status.UNAVAILABLE, 0]);
  });
});

it('a stream that never says Hello ends', () => {
  vi.useFakeTimers();
  const stream = new FakeStream();
  stream.handler = distribution.open(stream);
  vi.advanceTimersByTime(9_000);
  expect(stream.alive).toBe(true);
  vi.advanceTimersByTime(2_000);
  expect(stream.ended?.code).toBe(status.DEADLINE_EXCEEDED);
});
