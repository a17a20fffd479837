import type { CallOptions } from '@grpc/grpc-js';
import { noop } from 'cockatiel';
import { Etcd3, type IResponseHeader } from 'etcd3';
import { StoreError } from '../store-error.js';
import { etcdError, type CallKind } from './etcd-errors.js';
import { Lineage } from './lineage.js';

export interface MembersOptions {
  readonly endpoints: readonly string[];
  /** Milliseconds for one call, all its attempts together. */
  readonly timeoutMs: number;
}

export interface Member {
  readonly endpoint: string;
  readonly client: Etcd3;
}

type Call<T> = (client: Etcd3, options: CallOptions) => Promise<T>;

/** A read is tried twice at least: a connection that broke while idle is noticed by the call that uses it. */
const readAttemptsMin = 2;
const attemptMsMin = 1000;
const graceMs = 250;

/**
 * The members of one etcd cluster. Calls go to one of them for as long as it answers, then to the next; a write goes to
 * another only when the first has certainly not seen it.
 */
export class EtcdMembers {
  readonly lineage = new Lineage();
  private readonly members: readonly Member[];
  private at = 0;

  constructor(private readonly options: MembersOptions) {
    this.members = options.endpoints.map((endpoint) => ({ endpoint, client: connect(endpoint) }));
  }

  /** The member that calls go to now. */
  current(): Member {
    const member = this.members[this.at];
    if (member === undefined) throw new StoreError('invalid', 'etcd needs at least one endpoint.');
    return member;
  }

  /** Turns to the next member, unless another call has done so since `failed` was current. */
  turnFrom(failed: Member): void {
    if (this.current() === failed) this.at = (this.at + 1) % this.members.length;
  }

  /** Rejects with a StoreError within `timeoutMs` (and a small grace), whatever the network does. */
  async call<T>(kind: CallKind, call: Call<T>, timeoutMs = this.options.timeoutMs): Promise<T> {
    const deadline = performance.now() + timeoutMs;
    const attempts = Math.max(this.members.length, kind === 'read' ? readAttemptsMin : 1);
    const attemptMs = Math.max(attemptMsMin, timeoutMs / this.members.length);
    for (let attempt = 1; ; attempt += 1) {
      const leftMs = deadline - performance.now();
      const member = this.current();
      try {
        return await bounded(member, call, Math.min(attemptMs, leftMs));
      } catch (error) {
        const failure = etcdError(error, kind);
        const elsewhere = failure.code === 'unavailable' || failure.code === 'unknown-outcome';
        if (elsewhere) this.turnFrom(member);
        const again = failure.code === 'unavailable' && attempt < attempts && performance.now() < deadline;
        if (!again) throw failure;
      }
    }
  }

  /** A call whose answer all members agreed on: it tells when etcd went back. */
  async linear<T extends { readonly header: IResponseHeader }>(
    kind: CallKind,
    call: Call<T>,
    timeoutMs?: number,
  ): Promise<{ readonly answer: T; readonly revision: number }> {
    const floor = this.lineage.floor();
    const answer = await this.call(kind, call, timeoutMs);
    return { answer, revision: this.lineage.observe(answer.header, floor) };
  }

  /** The newest revision. */
  async revision(timeoutMs?: number): Promise<number> {
    const key = Buffer.from('/');
    const { revision } = await this.linear(
      'read',
      (client, options) => client.kv.range({ key, count_only: true }, options),
      timeoutMs,
    );
    return revision;
  }

  close(): void {
    for (const { client } of this.members) client.close();
  }
}

/**
 * etcd3's own fault handling is off: its breaker would refuse calls for seconds after etcd is back. gRPC's pauses between two attempts
 * to connect are short for the same reason; its pings find dead links, at an interval that etcd permits (5 s).
 */
function connect(endpoint: string): Etcd3 {
  return new Etcd3({
    hosts: endpoint,
    faultHandling: { host: () => noop, global: noop },
    grpcOptions: {
      'grpc.max_receive_message_length': -1,
      'grpc.max_send_message_length': -1,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 500,
      'grpc.keepalive_time_ms': 6000,
      'grpc.keepalive_timeout_ms': 2500,
    },
  });
}

/** gRPC's deadline is one of the wall clock, which may jump; the timer here is the one that holds. */
async function bounded<T>({ client, endpoint }: Member, call: Call<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `No answer from ${endpoint} within ${Math.round(timeoutMs)} ms`;
    timer = setTimeout(() => reject(new Error(message)), timeoutMs + graceMs);
  });
  try {
    return await Promise.race([call(client, { deadline: Date.now() + timeoutMs }), late]);
  } finally {
    clearTimeout(timer);
  }
}
