import {
  AgentServiceService,
  Update,
  type Ack,
  type BreakerKey,
  type ConnectRequest,
  type ConnectResponse,
  type Hello,
  type KeyReport,
  type Report,
  type Verdict,
} from '@bulwark/protocol';
import { Server, ServerCredentials, type ServerDuplexStream, type status as Status } from '@grpc/grpc-js';

type Stream = ServerDuplexStream<ConnectRequest, ConnectResponse>;

interface Session {
  readonly stream: Stream;
  hello: Hello | undefined;
  outstanding: Update | undefined;
}

export interface PeerOptions {
  /** 0 = any free port. */
  readonly port?: number;
  readonly replica?: string;
  readonly slot?: number;
  readonly serviceAgents?: number;
  /** Refuse this Hello instead of welcoming it. */
  readonly refuse?: (hello: Hello) => { code: Status; details: string } | undefined;
}

/**
 * A control plane of one process for tests: it sends what a test says and checks on every message that the agent
 * keeps the protocol. What it did not keep stands in `violations`.
 */
export class ProtocolPeer {
  readonly hellos: Hello[] = [];
  readonly acks: Ack[] = [];
  readonly reports: Report[] = [];
  readonly violations: string[] = [];
  readonly #server: Server;
  readonly #options: PeerOptions;
  #session: Session | undefined;
  readonly #watchers = new Set<() => void>();
  #nonce = 0;
  #pollId = 0;
  #port = 0;

  private constructor(options: PeerOptions) {
    this.#options = options;
    this.#server = new Server();
    this.#server.addService(AgentServiceService, { connect: (stream: Stream) => this.#accept(stream) });
  }

  static async start(options: PeerOptions = {}): Promise<ProtocolPeer> {
    const peer = new ProtocolPeer(options);
    peer.#port = await new Promise<number>((resolve, reject) => {
      peer.#server.bindAsync(
        `127.0.0.1:${options.port ?? 0}`,
        ServerCredentials.createInsecure(),
        (error, port) => (error === null ? resolve(port) : reject(error)),
      );
    });
    return peer;
  }

  get port(): number {
    return this.#port;
  }

  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  get connected(): boolean {
    return this.#session?.hello !== undefined;
  }

  /** Resolves when `check` holds after some message of the agent; rejects after five seconds. */
  when(check: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#watchers.delete(look);
        reject(new Error('the agent did not do in five seconds what was waited for'));
      }, 5_000);
      const look = (): void => {
        if (!check()) return;
        clearTimeout(timer);
        this.#watchers.delete(look);
        resolve();
      };
      this.#watchers.add(look);
      look();
    });
  }

  /** Latest counters of one key. */
  counters(key: string): KeyReport | undefined {
    for (const report of this.reports.toReversed()) {
      const found = report.keys.find((candidate) => candidate.key?.key === key);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Sends an update; its nonce is the answer. */
  update(update: Parameters<typeof Update.fromPartial>[0]): string {
    const nonce = `nonce-${(this.#nonce += 1)}`;
    const message = Update.fromPartial({ ...update, nonce });
    if (this.#session !== undefined) this.#session.outstanding = message;
    this.#send({ $case: 'update', value: message });
    return nonce;
  }

  verdicts(verdicts: Verdict[], removed: BreakerKey[] = []): void {
    this.#send({ $case: 'verdicts', value: { verdicts, removed } });
  }

  /** Sends a poll; its id is the answer. */
  poll(keys: BreakerKey[]): number {
    this.#pollId += 1;
    this.#send({ $case: 'poll', value: { pollId: this.#pollId, keys } });
    return this.#pollId;
  }

  drain(withinMs: number): void {
    this.#send({ $case: 'drain', value: { withinMs } });
  }

  /** As a killed process does it: every connection is cut at once. */
  stop(): void {
    this.#session = undefined;
    this.#server.forceShutdown();
  }

  #send(message: ConnectResponse['message']): void {
    if (this.#session === undefined) throw new Error('no agent is connected');
    this.#session.stream.write({ message });
  }

  #accept(stream: Stream): void {
    const session: Session = { stream, hello: undefined, outstanding: undefined };
    stream.on('data', (request: ConnectRequest) => {
      this.#receive(session, request);
      for (const look of this.#watchers) look();
    });
    stream.on('error', () => undefined);
    stream.on('cancelled', () => this.#forget(session));
    stream.on('end', () => {
      stream.end();
      this.#forget(session);
    });
  }

  #forget(session: Session): void {
    if (this.#session === session) this.#session = undefined;
  }

  #receive(session: Session, { message }: ConnectRequest): void {
    if (message === undefined) return this.#violated('a message without content');
    if (message.$case === 'hello') return this.#hello(session, message.value);
    if (session.hello === undefined) return this.#violated(`${message.$case} before hello`);
    if (message.$case === 'ack') this.#ack(session, message.value);
    else this.#report(session.hello, message.value);
  }

  #hello(session: Session, hello: Hello): void {
    if (session.hello !== undefined) this.#violated('a second hello on one stream');
    if (hello.protocol !== 1) this.#violated(`protocol ${hello.protocol}`);
    const former = this.hellos.findLast((other) => other.incarnation === hello.incarnation);
    if (former !== undefined && hello.connection <= former.connection) {
      this.#violated(`connection ${hello.connection} after ${former.connection}`);
    }
    this.hellos.push(hello);
    const refusal = this.#options.refuse?.(hello);
    if (refusal !== undefined) {
      session.stream.emit('error', refusal);
      return;
    }
    session.hello = hello;
    this.#session = session;
    const { replica = 'peer', slot = 0, serviceAgents = 1 } = this.#options;
    this.#send({ $case: 'welcome', value: { replica, slot, serviceAgents } });
  }

  #ack(session: Session, ack: Ack): void {
    const update = session.outstanding;
    if (update?.nonce !== ack.nonce)
      this.#violated(`ack of ${ack.nonce}, outstanding ${update?.nonce ?? 'none'}`);
    const asked = update?.resources.map((resource) => resource.name?.name).sort() ?? [];
    const answered = ack.resources.map((status) => status.name?.name).sort();
    if (asked.join() !== answered.join())
      this.#violated(`asked about ${asked.join()}, answered ${answered.join()}`);
    for (const status of ack.resources) {
      if (status.accepted === (status.reason !== ''))
        this.#violated('a reason goes with a refusal and only with one');
      if (status.reason.length > 1_024) this.#violated('a reason over 1,024 characters');
    }
    session.outstanding = undefined;
    this.acks.push(ack);
  }

  #report(hello: Hello, report: Report): void {
    if (report.incarnation !== hello.incarnation) this.#violated('a report of another incarnation');
    if (report.keys.length > 1_000) this.#violated(`${report.keys.length} keys in a report`);
    const former = this.reports.findLast((other) => other.incarnation === report.incarnation);
    if (former !== undefined && report.sequence <= former.sequence) {
      this.#violated(`sequence ${report.sequence} after ${former.sequence}`);
    }
    for (const key of report.keys) this.#checkCounters(report.incarnation, key);
    this.reports.push(report);
  }

  /** Cumulative means: never less than before, under one rule, within one incarnation. */
  #checkCounters(incarnation: string, now: KeyReport): void {
    const id = (key: KeyReport) => `${key.key?.namespace}/${key.key?.policy}/${key.key?.key}#${key.rule}`;
    for (const report of this.reports.toReversed()) {
      if (report.incarnation !== incarnation) continue;
      const before = report.keys.find((candidate) => id(candidate) === id(now));
      if (before === undefined) continue;
      for (const field of ['successes', 'failures', 'slow', 'ignored', 'rejected'] as const) {
        if (now[field] < before[field])
          this.#violated(`${field} of ${id(now)} fell: ${before[field]} → ${now[field]}`);
      }
      return;
    }
  }

  #violated(what: string): void {
    this.violations.push(what);
  }
}
