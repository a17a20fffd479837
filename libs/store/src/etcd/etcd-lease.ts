import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { ILeaseKeepAliveRequest, ILeaseKeepAliveResponse } from 'etcd3';
import { StoreError } from '../store-error.js';
import type { Lease } from '../store.js';
import { etcdError } from './etcd-errors.js';
import type { EtcdMembers } from './members.js';

type KeepAliveStream = ClientDuplexStream<ILeaseKeepAliveRequest, ILeaseKeepAliveResponse>;

export interface EtcdLeaseOptions {
  readonly id: string;
  /** What etcd granted, which may be more than was asked for. */
  readonly ttlMs: number;
  /** When the request for it was sent, monotonic: etcd's own time began later. */
  readonly askedAtMs: number;
  readonly members: EtcdMembers;
  readonly forget: (id: string) => void;
}

/** Lost this share of the time to live (at least 100 ms) before etcd lets it lapse. */
const marginShare = 0.1;
const marginMsMin = 100;
const retryMs = 200;

/** Grants a lease of at least `ttlMs`. */
export async function grantEtcdLease(
  members: EtcdMembers,
  ttlMs: number,
  forget: (id: string) => void,
): Promise<EtcdLease> {
  // An attempt that was sent and lost leaves a lease without keys in etcd, which lapses by itself.
  let askedAtMs = 0;
  const { ID: id, TTL: ttl } = await members.call('read', (client, options) => {
    askedAtMs = performance.now();
    return client.leaseClient.leaseGrant({ TTL: Math.ceil(ttlMs / 1000) }, options);
  });
  return new EtcdLease({ id, ttlMs: Number(ttl) * 1000, askedAtMs, members, forget });
}

/**
 * Kept alive three times in its time to live. The holder's own judgement: each confirmed keep-alive proves the lease from the
 * instant at which it was *sent*; when that proof runs out, the lease is lost, whatever etcd may still think.
 */
export class EtcdLease implements Lease {
  readonly id: string;
  readonly lost: AbortSignal;
  private readonly controller = new AbortController();
  private provenUntilMs: number;
  private judge: NodeJS.Timeout | undefined;
  private next: NodeJS.Timeout | undefined;
  private revoked: Promise<void> | undefined;

  constructor(private readonly options: EtcdLeaseOptions) {
    this.id = options.id;
    this.lost = this.controller.signal;
    this.provenUntilMs = this.proofFrom(options.askedAtMs);
    this.judgeLater();
    this.keepAliveIn(options.ttlMs / 3);
  }

  /** Whether a write may be made under it now: after a pause of the process no timer may have run yet. */
  lives(): boolean {
    if (!this.lost.aborted && performance.now() >= this.provenUntilMs)
      this.lapse('was not confirmed in time');
    return !this.lost.aborted;
  }

  async release(): Promise<void> {
    this.end(new StoreError('closed', 'The lease was given back.'));
    this.revoked ??= this.revoke();
    await this.revoked;
  }

  private async revoke(): Promise<void> {
    if ((this.lost.reason as StoreError).code === 'lease-lost') return;
    try {
      // Revoking twice is harmless, so it may be tried at every member.
      await this.options.members.call('read', (client, options) =>
        client.leaseClient.leaseRevoke({ ID: this.id }, options),
      );
    } catch (error) {
      if (error instanceof StoreError && error.code === 'lease-lost') return;
      throw error;
    }
  }

  private proofFrom(sentAtMs: number): number {
    const { ttlMs } = this.options;
    return sentAtMs + ttlMs - Math.max(marginMsMin, ttlMs * marginShare);
  }

  private judgeLater(): void {
    clearTimeout(this.judge);
    const inMs = Math.max(0, this.provenUntilMs - performance.now());
    this.judge = setTimeout(() => {
      if (this.lives()) this.judgeLater();
    }, inMs).unref();
  }

  private keepAliveIn(ms: number): void {
    this.next = setTimeout(() => void this.keepAlive(), ms).unref();
  }

  private async keepAlive(): Promise<void> {
    if (!this.lives()) return;
    const sentAtMs = performance.now();
    const leftMs = this.provenUntilMs - sentAtMs;
    try {
      const ttl = await keepAliveOnce(
        this.options.members,
        this.id,
        Math.min(leftMs, this.options.ttlMs / 3),
      );
      if (this.lost.aborted) return;
      if (ttl <= 0) return this.lapse('is gone in etcd');
      if (!this.lives()) return;
      this.provenUntilMs = this.proofFrom(sentAtMs);
      this.judgeLater();
      this.keepAliveIn(this.options.ttlMs / 3);
    } catch (error) {
      if (this.lost.aborted) return;
      if (etcdError(error, 'read').code === 'lease-lost') return this.lapse('is gone in etcd');
      this.keepAliveIn(retryMs);
    }
  }

  private lapse(why: string): void {
    this.end(new StoreError('lease-lost', `The lease ${this.id} ${why}.`));
  }

  private end(why: StoreError): void {
    if (this.lost.aborted) return;
    clearTimeout(this.judge);
    clearTimeout(this.next);
    this.options.forget(this.id);
    this.controller.abort(why);
  }
}

/** Answers the seconds that etcd gave it again; 0 = it does not know the lease. A stream for one question: nothing to resume. */
function keepAliveOnce(members: EtcdMembers, id: string, timeoutMs: number): Promise<number> {
  return members.call(
    'read',
    async (client, options) => {
      const stream = (await client.leaseClient.leaseKeepAlive(options)) as unknown as KeepAliveStream;
      return new Promise<number>((resolve, reject) => {
        stream.on('data', ({ TTL: ttl }: ILeaseKeepAliveResponse) => {
          resolve(Number(ttl));
          stream.end();
        });
        stream.on('error', reject);
        stream.on('end', () => reject(new Error('etcd ended the keep-alive without an answer')));
        stream.write({ ID: id });
      });
    },
    timeoutMs,
  );
}
