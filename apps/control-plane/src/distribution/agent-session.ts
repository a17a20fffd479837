import {
  agentId,
  ConnectResponse,
  type Hello,
  type Resource,
  type SnapshotVersion,
  type Verdict,
} from '@bulwark/protocol';
import type { AgentIdentity } from '@bulwark/fleet';
import { AgentDelivery } from './agent-delivery.js';
import type { UpdateEncoder } from './update-bytes.js';

/** The writing side of a stream. `write` answers false when the other side does not keep up. */
export interface AgentStream {
  write(bytes: Buffer): boolean;
  /** Ends it with a status that is no refusal. */
  close(reason: string): void;
}

/** Verdicts for many agents, serialised once. */
export interface SharedVerdicts {
  readonly verdicts: ReadonlyMap<string, Verdict>;
  readonly removed: ReadonlyMap<string, NonNullable<Verdict['key']>>;
  readonly bytes: Buffer;
}

export interface SessionOptions {
  readonly hello: Hello;
  readonly stream: AgentStream;
  readonly slot: number;
  /** Wall time, for people. */
  readonly connectedAt: Date;
  readonly nowMs: number;
}

const REPORTS_PER_SECOND = 100;
const REPORT_BURST = 200;

/** One connected agent. What waits for it is bounded: one update, and the newest verdict of each key. */
export class AgentSession {
  readonly identity: AgentIdentity;
  readonly hello: Hello;
  readonly slot: number;
  /** Namespace and labels as one text: agents with the same one are meant by the same policies. */
  readonly audience: string;
  readonly connectedAt: Date;
  readonly delivery: AgentDelivery;
  /** Monotonic milliseconds of its last message. */
  lastSeenMs: number;
  lastSeenAt: Date;
  /** What its last update said. */
  serviceAgents = 0;
  private reportsLeft = REPORT_BURST;
  private reportsAtMs: number;
  private readonly stream: AgentStream;
  private blocked = false;
  private ready = false;
  private readonly verdicts = new Map<string, Verdict>();
  private readonly removals = new Map<string, NonNullable<Verdict['key']>>();

  constructor(options: SessionOptions) {
    const { hello } = options;
    this.hello = hello;
    this.stream = options.stream;
    this.slot = options.slot;
    this.connectedAt = options.connectedAt;
    this.lastSeenMs = options.nowMs;
    this.reportsAtMs = options.nowMs;
    this.lastSeenAt = options.connectedAt;
    this.delivery = new AgentDelivery(hello);
    const { namespace, service, incarnation, labels } = hello;
    this.audience = `${namespace} ${JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))}`;
    this.identity = { id: agentId(hello), incarnation, namespace, service, labels };
  }

  get id(): string {
    return this.identity.id;
  }

  /** Welcome was said and the first update is on its way: verdicts may follow. */
  get isReady(): boolean {
    return this.ready;
  }

  /** Whether another report is within what an agent may send: 100 a second, twice what a sound one does at most. */
  takesReport(nowMs: number): boolean {
    const refilled = this.reportsLeft + ((nowMs - this.reportsAtMs) * REPORTS_PER_SECOND) / 1_000;
    this.reportsAtMs = nowMs;
    this.reportsLeft = Math.min(REPORT_BURST, refilled);
    if (this.reportsLeft < 1) return false;
    this.reportsLeft -= 1;
    return true;
  }

  welcome(replica: string, serviceAgents: number): void {
    const value = { replica, slot: this.slot, serviceAgents };
    this.send(encode({ message: { $case: 'welcome', value } }));
  }

  /** Sends the difference to what is desired, if there is one and nothing is in flight. */
  update(
    desired: ReadonlyMap<string, Resource>,
    version: SnapshotVersion,
    how: { encoder: UpdateEncoder; serviceAgents: number; nowMs: number; announce?: boolean },
  ): boolean {
    const plan = this.delivery.plan(desired, version, how.announce);
    if (plan === undefined) return false;
    const { nonce, bytes } = how.encoder.encode(plan, how.serviceAgents);
    this.delivery.sending(plan, nonce, how.nowMs);
    this.serviceAgents = how.serviceAgents;
    this.send(bytes);
    this.ready = true;
    this.flush();
    return true;
  }

  sendVerdicts(shared: SharedVerdicts): void {
    if (this.ready && !this.blocked) return this.send(shared.bytes);
    for (const [key, verdict] of shared.verdicts) {
      this.verdicts.set(key, verdict);
      this.removals.delete(key);
    }
    for (const [key, removal] of shared.removed) {
      this.verdicts.delete(key);
      this.removals.set(key, removal);
    }
  }

  /** Polls are worth something only now: dropped when the agent does not keep up. */
  sendPoll(bytes: Buffer): void {
    if (this.ready && !this.blocked) this.send(bytes);
  }

  drain(withinMs: number): void {
    this.send(encode({ message: { $case: 'drain', value: { withinMs } } }));
  }

  /** The stream takes more again. */
  drained(): void {
    this.blocked = false;
    this.flush();
  }

  /** Sends the verdicts that waited, the newest of each key. */
  flush(): void {
    if (!this.ready || this.blocked || (this.verdicts.size === 0 && this.removals.size === 0)) return;
    const value = { verdicts: [...this.verdicts.values()], removed: [...this.removals.values()] };
    this.verdicts.clear();
    this.removals.clear();
    this.send(encode({ message: { $case: 'verdicts', value } }));
  }

  close(reason: string): void {
    this.stream.close(reason);
  }

  private send(bytes: Buffer): void {
    if (!this.stream.write(bytes)) this.blocked = true;
  }
}

export function encode(message: ConnectResponse): Buffer {
  return Buffer.from(ConnectResponse.encode(message).finish());
}
