import { Metadata, status as Status, type InterceptorOptions, type StatusObject } from '@grpc/grpc-js';
import { Guard, type GuardSettings } from '@bulwark/resilience';
import {
  breakerSettings,
  checkModelAsync,
  commandsOf,
  FakeHost,
  guardSettings,
  retrySettings,
} from '@bulwark/testing';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { grpcGuard } from './grpc-options.js';
import type { CallListener, InterceptedCall, MessageContext } from './grpc-types.js';
import { GuardedGrpcCall } from './guarded-grpc-call.js';
import type { GrpcEnvironment } from './prepared-call.js';

/** The transport's side of one attempt, moved by hand. */
class FakeTransport implements InterceptedCall {
  started = false;
  ended = false;
  halfClosed = false;
  private received = 0;
  private listener: CallListener = {};
  private readonly unwritten: MessageContext[] = [];

  /** `wrong` is told what must never be asked of a transport; what is thrown here would be taken for a closed channel. */
  constructor(private readonly wrong: (what: string) => void) {}

  start(_metadata: Metadata, listener: CallListener = {}): void {
    if (this.started) this.wrong('started twice');
    this.started = true;
    this.listener = listener;
  }

  sendMessage(message: unknown): void {
    this.sendMessageWithContext({}, message);
  }

  sendMessageWithContext(context: MessageContext, message: unknown): void {
    if (message !== this.received) this.wrong('sent a message out of its turn');
    this.received += 1;
    if (this.halfClosed) this.wrong('sent after the half-close');
    if (this.unwritten.length > 0) this.wrong('sent two messages at a time: there is room for one');
    this.unwritten.push(context);
  }

  halfClose(): void {
    if (this.halfClosed) this.wrong('half-closed twice');
    this.halfClosed = true;
  }

  startRead(): void {
    if (!this.started) this.wrong('read before it was started');
  }

  cancelWithStatus(code: Status, details: string): void {
    this.end(code, details);
  }

  getPeer(): string {
    return 'dns:echo';
  }

  getAuthContext(): null {
    return null;
  }

  wrote(): void {
    this.unwritten.shift()?.callback?.();
  }

  headers(): void {
    if (!this.ended) this.listener.onReceiveMetadata?.(new Metadata());
  }

  message(): void {
    if (!this.ended) this.listener.onReceiveMessage?.({});
  }

  end(code: Status, details = '', marks: Record<string, string> = {}): void {
    if (this.ended) return;
    this.ended = true;
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(marks)) metadata.set(name, value);
    // As the transport does: in a tick of its own.
    process.nextTick(() => this.listener.onReceiveStatus?.({ code, details, metadata }));
  }
}

type Kind = 'unary' | 'upload' | 'watch' | 'chat';

const settings: GuardSettings = guardSettings({
  timeout: { attemptMs: 300, totalMs: 2_000 },
  retry: retrySettings({
    methods: new Set(['POST']),
    backoff: { baseMs: 50, maxMs: 100, jitter: 'none' },
  }),
  breaker: breakerSettings({
    trip: { consecutiveFailures: 4 },
    cooldown: { initialMs: 200, maxMs: 200, factor: 1 },
  }),
  bulkhead: { maxConcurrent: 2, maxQueued: 2, maxWaitMs: 150 },
});

/** Calls of all kinds under one guard, and what their applications heard. */
class World {
  readonly host = new FakeHost();
  readonly guard = new Guard({ host: this.host, settings });
  readonly transports: FakeTransport[] = [];
  readonly calls: AppCall[] = [];
  readonly wrong: string[] = [];

  private readonly environment: GrpcEnvironment = {
    plan: () => ({
      settings,
      lastGood: undefined,
      execute: (request, attempt, adapter) => this.guard.call(request, attempt, adapter),
    }),
    inherited: () => ({}),
    believes: () => true,
    traceId: () => undefined,
    noteDegraded: () => undefined,
    nowMs: this.host.nowMs,
    unixMs: this.host.nowMs,
  };

  begin(kind: Kind, deadlineMs: number | undefined): void {
    const abort = new AbortController();
    const definition = {
      path: '/demo.Echo/Any',
      requestStream: kind === 'upload' || kind === 'chat',
      responseStream: kind === 'watch' || kind === 'chat',
      requestSerialize: () => Buffer.alloc(100_000),
      responseDeserialize: () => ({}),
    };
    const deadline = deadlineMs === undefined ? {} : { deadline: this.host.nowMs() + deadlineMs };
    const options: InterceptorOptions = {
      ...grpcGuard({ signal: abort.signal }, deadline),
      method_definition: definition,
    };
    const nextCall = (): InterceptedCall => {
      if (app.delivered) this.wrong.push('tried again after a message was handed on');
      if (app.statuses.length > 0) this.wrong.push('tried after its end');
      const transport = new FakeTransport((what) => this.wrong.push(what));
      this.transports.push(transport);
      return transport;
    };
    const call = new GuardedGrpcCall(this.environment, { service: 'echo' }, { options, nextCall });
    const app: AppCall = new AppCall(call, abort, (what) => this.wrong.push(what));
    this.calls.push(app);
    call.start(new Metadata(), app.listener);
    if (!definition.requestStream) {
      app.send();
      app.halfClose();
    }
  }
}

/** What one application does and hears. */
class AppCall {
  readonly statuses: StatusObject[] = [];
  sent = 0;
  released = 0;
  halfClosed = false;
  delivered = false;

  constructor(
    readonly call: GuardedGrpcCall,
    readonly abort: AbortController,
    private readonly wrong: (what: string) => void,
  ) {}

  readonly listener: CallListener = {
    onReceiveMetadata: () => {
      if (this.statuses.length > 0) this.wrong('headers after the status');
    },
    onReceiveMessage: () => {
      if (this.statuses.length > 0) this.wrong('a message after the status');
      this.delivered = true;
    },
    onReceiveStatus: (end) => this.statuses.push(end),
  };

  send(): void {
    // A stream writes its next message when the last one was taken.
    if (this.halfClosed || this.released < this.sent) return;
    const message = this.sent;
    this.sent += 1;
    this.call.sendMessageWithContext({ callback: () => (this.released += 1) }, message);
  }

  halfClose(): void {
    if (this.halfClosed) return;
    this.halfClosed = true;
    this.call.halfClose();
  }
}

const CODES = [
  Status.OK,
  Status.CANCELLED,
  Status.NOT_FOUND,
  Status.DEADLINE_EXCEEDED,
  Status.UNAVAILABLE,
  Status.UNAVAILABLE,
  Status.INTERNAL,
];

type Command = (world: World) => void | Promise<void>;

const pick = fc.nat({ max: 20 });
const onCall = (act: (call: AppCall) => void) =>
  pick.map((at): Command => (world) => {
    const call = world.calls[at % Math.max(1, world.calls.length)];
    if (call !== undefined) act(call);
  });
/** A cancelled call ends at once, whatever it was doing. */
const cancelled = (cancel: (call: AppCall) => void) =>
  pick.map((at): Command => async (world) => {
    const call = world.calls[at % Math.max(1, world.calls.length)];
    if (call === undefined) return;
    cancel(call);
    await world.host.settle();
    if (call.statuses.length !== 1) world.wrong.push('a cancelled call goes on');
  });
/** On one of the youngest attempts: the others are mostly over. */
const onTransport = (act: (transport: FakeTransport) => void) =>
  fc.nat({ max: 3 }).map((back): Command => (world) => {
    const transport = world.transports.at(-1 - back);
    if (transport !== undefined) act(transport);
  });

const begin = fc
  .tuple(
    fc.constantFrom<Kind>('unary', 'upload', 'upload', 'watch', 'chat', 'chat'),
    fc.option(fc.nat({ max: 1_000 })),
  )
  .map(
    ([kind, deadlineMs]): Command =>
      (world) =>
        world.begin(kind, deadlineMs ?? undefined),
  );

/** Sends, and lets it be written: only so do streams come to have several messages. */
const sendAndWrite = fc.nat({ max: 1 }).map((back): Command => async (world) => {
  for (const call of world.calls) call.send();
  world.transports.at(-1 - back)?.wrote();
  await world.host.settle();
});

/** Fails an attempt so that another follows, unless something of the call is used up. */
const failAndWait = fc.nat({ max: 1 }).map((back): Command => async (world) => {
  world.transports.at(-1 - back)?.end(Status.UNAVAILABLE);
  await world.host.advance(60);
});

const command: fc.Arbitrary<Command> = fc.oneof(
  { arbitrary: begin, weight: 4 },
  { arbitrary: sendAndWrite, weight: 6 },
  { arbitrary: failAndWait, weight: 4 },
  onCall((call) => call.send()),
  onCall((call) => call.halfClose()),
  onCall((call) => call.call.startRead()),
  cancelled((call) => call.call.cancelWithStatus(Status.CANCELLED, 'Cancelled on client')),
  cancelled((call) => call.abort.abort()),
  onTransport((transport) => transport.wrote()),
  onTransport((transport) => transport.headers()),
  onTransport((transport) => transport.message()),
  fc
    .tuple(fc.constantFrom(...CODES), fc.constantFrom('', '0', '40', '-1'), fc.nat({ max: 3 }))
    .map(([code, pushback, back]): Command => (world) => {
      const marks = pushback === '' ? {} : { 'grpc-retry-pushback-ms': pushback };
      world.transports.at(-1 - back)?.end(code, 'told', marks);
    }),
  fc.nat({ max: 100 }).map(
    (ms): Command =>
      (world) =>
        world.host.advance(ms),
  ),
);

test('whatever happens to calls, nothing they took stays taken, and each hears one status', async () => {
  await checkModelAsync(
    fc.asyncProperty(commandsOf(command, 60), async (commands) => {
      const world = new World();
      for (const act of commands) {
        await act(world);
        const { inFlight, waiting } = world.guard.read();
        if (inFlight > 2 || waiting > 2) throw new Error(`${inFlight} in flight, ${waiting} waiting`);
      }
      // Every call has a deadline of two seconds at most.
      await world.host.advance(5_000);
      expect(world.wrong).toEqual([]);
      const { inFlight, waiting } = world.guard.read();
      expect({ inFlight, waiting }).toEqual({ inFlight: 0, waiting: 0 });
      for (const call of world.calls) {
        expect(call.statuses).toHaveLength(1);
        expect(call.released).toBe(call.sent);
      }
      for (const transport of world.transports) {
        expect([transport.started, transport.ended]).toEqual([true, true]);
      }
      await expectFreePermit(world);
    }),
    0.1,
  );
});

/** After its cooldown the breaker gives its probe to the next call: no permit was lost. */
async function expectFreePermit(world: World): Promise<void> {
  await world.host.advance(1_000);
  const before = world.transports.length;
  world.begin('unary', undefined);
  const probe = world.transports[before];
  expect(probe?.started).toBe(true);
  probe?.message();
  probe?.end(Status.OK);
  await world.host.advance(0);
  expect(world.calls.at(-1)?.statuses[0]?.code).toBe(Status.OK);
  expect(world.guard.read().inFlight).toBe(0);
}
