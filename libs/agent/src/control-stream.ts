import {
  AgentServiceClient,
  CLIENT_CHANNEL_OPTIONS,
  type Ack,
  type ConnectRequest,
  type ConnectResponse,
  type Drain,
  type Hello,
  type Poll,
  type Report,
  type Update,
  type VerdictUpdate,
  type Welcome,
} from '@bulwark/protocol';
import { credentials, type ClientDuplexStream, type StatusObject } from '@grpc/grpc-js';
import { Backoff } from './backoff.js';
import type { Logger } from './logger.js';
import { lostCause } from './lost-cause.js';
import { refusalOf, type Refusal } from './refusal.js';

/** What the stream brings. None of these may throw. */
export interface StreamHandler {
  /** Called at each connect: who this agent is and what it holds now. */
  readonly hello: () => Omit<Hello, 'connection'>;
  readonly welcome: (welcome: Welcome) => void;
  /** `ack` answers this update on the stream that brought it; on another stream it does nothing. */
  readonly update: (update: Update, ack: (ack: Ack) => void) => void;
  readonly verdicts: (verdicts: VerdictUpdate) => void;
  readonly poll: (poll: Poll) => void;
  /** The stream takes reports again after having been blocked. */
  readonly writable: () => void;
  /** A connection ended, or could not be made. */
  readonly lost: () => void;
  readonly refused: (refusal: Refusal) => void;
}

export interface StreamStatus {
  /** none = there is no address to connect to. */
  readonly state: 'none' | 'connecting' | 'connected' | 'waiting' | 'refused' | 'closed';
  /** Empty = there is none. */
  readonly address: string;
  /** Identity of the replica, once welcomed. */
  readonly replica: string | undefined;
  /** Why the last connection ended or could not be made. */
  readonly lastError: string | undefined;
  /** Connects of this incarnation. */
  readonly connections: number;
}

export interface ControlStreamOptions {
  readonly addresses: readonly string[];
  readonly handler: StreamHandler;
  readonly logger: Logger;
  readonly random: () => number;
  /** Whether a policy in force may guard a call of this agent; for the log. */
  readonly guarded: () => boolean;
}

/** A server that accepts the stream and stays silent is given up after this. */
const WELCOME_TIMEOUT_MS = 5_000;
/** A connection that lived this long was a good one: the next loss begins with a short wait again. */
const GOOD_CONNECTION_MS = 10_000;
const CLOSE_GRACE_MS = 1_000;

interface Connection {
  readonly client: AgentServiceClient;
  readonly call: ClientDuplexStream<ConnectRequest, ConnectResponse>;
  readonly startedAtMs: number;
  readonly welcomeTimer: NodeJS.Timeout;
  /** It was given up because no welcome came. */
  silent: boolean;
  blocked: boolean;
}

/**
 * Keeps one stream to one replica of the control plane, for ever: loss leads to another try at the next address.
 * At most one connection is current; whatever a former one still says is ignored.
 */
export class ControlStream {
  readonly #options: ControlStreamOptions;
  readonly #backoff: Backoff;
  #connection: Connection | undefined;
  #timer: NodeJS.Timeout | undefined;
  #addressIndex: number;
  #connections = 0;
  #state: StreamStatus['state'] = 'connecting';
  #replica: string | undefined;
  #lastError: string | undefined;
  #loggedRefusal: string | undefined;

  constructor(options: ControlStreamOptions) {
    this.#options = options;
    this.#backoff = new Backoff({ baseMs: 200, maxMs: 10_000, random: options.random });
    // Agents spread over the replicas from the first connect on.
    this.#addressIndex = Math.floor(options.random() * options.addresses.length);
  }

  start(): void {
    if (this.#state === 'closed') return;
    if (this.#options.addresses.length === 0) this.#state = 'none';
    else this.#connect();
  }

  status(): StreamStatus {
    return {
      state: this.#state,
      address: this.#address(),
      replica: this.#replica,
      lastError: this.#lastError,
      connections: this.#connections,
    };
  }

  /** False: not connected, or the stream is blocked; nothing was taken and nothing is buffered. */
  sendReport(report: Report): boolean {
    const connection = this.#connection;
    if (connection === undefined || this.#state !== 'connected' || connection.blocked) return false;
    connection.blocked = !connection.call.write({ message: { $case: 'report', value: report } });
    return true;
  }

  /** Ends the stream after what was written has left, within a second. */
  async close(): Promise<void> {
    this.#state = 'closed';
    clearTimeout(this.#timer);
    const connection = this.#connection;
    this.#connection = undefined;
    if (connection !== undefined) await endGently(connection);
  }

  #address(): string {
    return this.#options.addresses[this.#addressIndex % this.#options.addresses.length] ?? '';
  }

  #connect(): void {
    this.#state = 'connecting';
    this.#replica = undefined;
    this.#connections += 1;
    const client = new AgentServiceClient(
      this.#address(),
      credentials.createInsecure(),
      CLIENT_CHANNEL_OPTIONS,
    );
    const call = client.connect();
    const connection: Connection = {
      client,
      call,
      startedAtMs: performance.now(),
      welcomeTimer: setTimeout(() => {
        connection.silent = true;
        call.cancel();
      }, WELCOME_TIMEOUT_MS),
      silent: false,
      blocked: false,
    };
    this.#connection = connection;
    call.on('data', (response: ConnectResponse) => this.#receive(connection, response));
    call.on('drain', () => this.#drained(connection));
    // A failed stream says so twice; the status, which always comes, is the one that counts.
    call.on('error', () => undefined);
    call.on('status', (end) => this.#ended(connection, end));
    const hello: Hello = { ...this.#options.handler.hello(), connection: this.#connections };
    call.write({ message: { $case: 'hello', value: hello } });
  }

  #receive(connection: Connection, { message }: ConnectResponse): void {
    if (connection !== this.#connection || message === undefined) return;
    switch (message.$case) {
      case 'welcome':
        return this.#welcomed(connection, message.value);
      case 'update':
        return this.#options.handler.update(message.value, (ack) => this.#ack(connection, ack));
      case 'verdicts':
        return this.#options.handler.verdicts(message.value);
      case 'poll':
        return this.#options.handler.poll(message.value);
      case 'drain':
        return this.#moveLater(connection, message.value);
    }
  }

  #welcomed(connection: Connection, welcome: Welcome): void {
    clearTimeout(connection.welcomeTimer);
    this.#state = 'connected';
    this.#replica = welcome.replica;
    this.#lastError = undefined;
    this.#loggedRefusal = undefined;
    const fields = { address: this.#address(), replica: welcome.replica, connection: this.#connections };
    this.#options.logger.info(fields, 'connected to the control plane');
    this.#options.handler.welcome(welcome);
  }

  #ack(connection: Connection, ack: Ack): void {
    if (connection !== this.#connection) return;
    connection.call.write({ message: { $case: 'ack', value: ack } });
  }

  #drained(connection: Connection): void {
    if (connection !== this.#connection || !connection.blocked) return;
    connection.blocked = false;
    this.#options.handler.writable();
  }

  /** The replica is leaving: go elsewhere, not all agents at the same moment. */
  #moveLater(connection: Connection, drain: Drain): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (connection !== this.#connection) return;
      this.#options.logger.info(
        { address: this.#address() },
        'moving to another replica, this one is leaving',
      );
      this.#connection = undefined;
      void endGently(connection);
      this.#options.handler.lost();
      this.#addressIndex += 1;
      this.#connect();
    }, this.#options.random() * drain.withinMs);
  }

  #ended(connection: Connection, end: StatusObject): void {
    clearTimeout(connection.welcomeTimer);
    connection.client.close();
    if (connection !== this.#connection) return;
    this.#connection = undefined;
    clearTimeout(this.#timer);
    const refusal = refusalOf(end);
    if (refusal === undefined) this.#lost(connection, end);
    else this.#refused(refusal);
    this.#addressIndex += 1;
  }

  #lost(connection: Connection, end: StatusObject): void {
    const wasConnected = this.#state === 'connected';
    const reason = connection.silent
      ? `no welcome within ${WELCOME_TIMEOUT_MS} ms; is this the gRPC port of a control plane?`
      : lostCause(end);
    if (wasConnected && performance.now() - connection.startedAtMs >= GOOD_CONNECTION_MS)
      this.#backoff.reset();
    const waitMs = this.#backoff.nextMs();
    // The first line of an outage is for people, the rest of it would be noise.
    const level = wasConnected || this.#lastError === undefined ? 'warn' : 'debug';
    const message = wasConnected ? 'lost the control plane' : 'the control plane does not answer';
    const fields = { address: this.#address(), reason, retryInMs: Math.round(waitMs) };
    this.#options.logger[level](fields, `${message}; ${this.#meanwhile()}`);
    this.#lastError = reason;
    this.#wait('waiting', waitMs);
    this.#options.handler.lost();
  }

  #refused(refusal: Refusal): void {
    const wasConnected = this.#state === 'connected';
    this.#lastError = `${refusal.grpcStatus}: ${refusal.message}`;
    if (this.#loggedRefusal !== this.#lastError) {
      this.#loggedRefusal = this.#lastError;
      const fields = { address: this.#address(), reason: this.#lastError, hint: refusal.hint };
      this.#options.logger.error(fields, `the control plane refused this agent; ${this.#meanwhile()}`);
    }
    this.#wait('refused', this.#backoff.nextAfterRefusalMs());
    if (wasConnected) this.#options.handler.lost();
    this.#options.handler.refused(refusal);
  }

  /** What becomes of calls while there is no control plane. */
  #meanwhile(): string {
    return this.#options.guarded()
      ? 'calls go on under the last known policies'
      : 'there is no policy for this agent, its calls pass unguarded';
  }

  #wait(state: 'waiting' | 'refused', waitMs: number): void {
    this.#state = state;
    this.#replica = undefined;
    this.#timer = setTimeout(() => this.#connect(), waitMs);
    // Waiting for a control plane must not keep a process alive that has nothing else to do.
    this.#timer.unref();
  }
}

async function endGently(connection: Connection): Promise<void> {
  clearTimeout(connection.welcomeTimer);
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, CLOSE_GRACE_MS);
    connection.call.once('status', () => {
      clearTimeout(timer);
      resolve();
    });
    connection.call.end();
  });
  connection.call.cancel();
  connection.client.close();
}
