import {
  AgentServiceClient,
  CLIENT_CHANNEL_OPTIONS,
  Hello,
  KeyReport,
  resourceId,
  type ConnectRequest,
  type ConnectResponse,
  type Drain,
  type Poll,
  type Resource,
  type Update,
  type Verdict,
  type Welcome,
} from '@bulwark/protocol';
import { credentials, type ClientDuplexStream, type StatusObject } from '@grpc/grpc-js';
import { keyId } from '../fleet/breaker-name.js';

export interface PlainAgentOptions {
  readonly hello?: Partial<Hello>;
  /** Why it refuses a resource; undefined = it takes it. */
  readonly refuse?: (resource: Resource) => string | undefined;
  /** False: updates are kept, and answered by `answer` only. */
  readonly answers?: boolean;
  /** Counters it reports when it is asked; called for each poll. */
  readonly counters?: () => KeyReport[];
}

/** An agent without an engine: it keeps the protocol, remembers what it was sent, and checks it. */
export class PlainAgent {
  readonly updates: Update[] = [];
  readonly inForce = new Map<string, Resource>();
  readonly verdicts = new Map<string, Verdict>();
  readonly polls: Poll[] = [];
  readonly drains: Drain[] = [];
  readonly violations: string[] = [];
  welcome: Welcome | undefined;
  ended: StatusObject | undefined;
  readonly hello: Hello;
  private readonly client: AgentServiceClient;
  private readonly call: ClientDuplexStream<ConnectRequest, ConnectResponse>;
  private readonly options: PlainAgentOptions;
  private sequence = 0;
  private reportedAtMs = performance.now();
  private unanswered: Update | undefined;

  constructor(address: string, options: PlainAgentOptions = {}) {
    this.options = options;
    this.hello = Hello.fromPartial({
      namespace: 'shop',
      service: 'storefront',
      instance: 'a',
      incarnation: 'one',
      protocol: 1,
      connection: 1,
      version: 'test',
      ...options.hello,
    });
    this.client = new AgentServiceClient(address, credentials.createInsecure(), CLIENT_CHANNEL_OPTIONS);
    this.call = this.client.connect();
    this.call.on('data', (response: ConnectResponse) => this.receive(response));
    this.call.on('error', () => undefined);
    this.call.on('status', (status: StatusObject) => (this.ended = status));
    this.call.write({ message: { $case: 'hello', value: this.hello } });
  }

  /** Answers the update that waits. */
  answer(nonce?: string): void {
    const update = this.unanswered;
    if (update === undefined) throw new Error('no update waits for an answer');
    this.unanswered = undefined;
    const resources = update.resources.map((resource) => {
      const reason = this.options.refuse?.(resource) ?? '';
      if (reason === '' && resource.name) this.inForce.set(resourceId(resource.name), resource);
      return { name: resource.name, generation: resource.generation, accepted: reason === '', reason };
    });
    for (const name of update.removed) this.inForce.delete(resourceId(name));
    const ack = { nonce: nonce ?? update.nonce, version: update.version, resources };
    this.call.write({ message: { $case: 'ack', value: ack } });
  }

  /** Writes an Ack of one's own making. */
  ackOf(update: Update): void {
    const resources = update.resources.map(({ name, generation }) => ({
      name,
      generation,
      accepted: true,
      reason: '',
    }));
    this.call.write({
      message: { $case: 'ack', value: { nonce: update.nonce, version: update.version, resources } },
    });
  }

  report(keys: Parameters<typeof KeyReport.fromPartial>[0][], pollId = 0): void {
    this.sequence += 1;
    const nowMs = performance.now();
    const coversMs = Math.ceil(nowMs - this.reportedAtMs);
    this.reportedAtMs = nowMs;
    const value = {
      incarnation: this.hello.incarnation,
      sequence: this.sequence,
      coversMs,
      keys: keys.map((key) => KeyReport.fromPartial(key)),
      pollId,
    };
    this.call.write({ message: { $case: 'report', value } });
  }

  close(): void {
    this.call.cancel();
    this.client.close();
  }

  private receive({ message }: ConnectResponse): void {
    if (message === undefined) return this.violated('an empty message');
    if (message.$case !== 'welcome' && this.welcome === undefined)
      this.violated(`${message.$case} before welcome`);
    switch (message.$case) {
      case 'welcome':
        this.welcome = message.value;
        return;
      case 'update':
        return this.update(message.value);
      case 'verdicts':
        if (this.updates.length === 0) this.violated('verdicts before the first update');
        for (const verdict of message.value.verdicts)
          if (verdict.key) this.verdicts.set(keyId(verdict.key), verdict);
        for (const key of message.value.removed) this.verdicts.delete(keyId(key));
        return;
      case 'poll':
        this.polls.push(message.value);
        return this.report(this.options.counters?.() ?? [], message.value.pollId);
      case 'drain':
        this.drains.push(message.value);
    }
  }

  private update(update: Update): void {
    if (this.unanswered !== undefined) this.violated('a second update before the answer to the first');
    const last = this.updates.at(-1)?.version;
    if (
      last &&
      update.version &&
      (update.version.era < last.era || update.version.revision < last.revision)
    ) {
      if (update.version.era <= last.era) this.violated('an update older than the one before');
    }
    this.updates.push(update);
    this.unanswered = update;
    if (update.full) this.inForce.clear();
    if (this.options.answers !== false) this.answer();
  }

  private violated(text: string): void {
    this.violations.push(text);
  }
}
