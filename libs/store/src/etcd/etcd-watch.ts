import { InterceptingCall, type CallOptions, type ClientDuplexStream } from '@grpc/grpc-js';
import { setTimeout as sleep } from 'node:timers/promises';
import type { IEvent, IWatchRequest, IWatchResponse } from 'etcd3';
import { checkPrefix, checkRevision } from '../bounds.js';
import { StoreError } from '../store-error.js';
import type { Change, ChangeBatch, WatchOptions } from '../store.js';
import { etcdError, isRefusal } from './etcd-errors.js';
import type { EtcdKeys } from './etcd-keys.js';
import { toRevision } from './lineage.js';
import type { EtcdMembers, Member } from './members.js';

type WatchStream = ClientDuplexStream<IWatchRequest, IWatchResponse>;

export interface EtcdWatchContext {
  readonly members: EtcdMembers;
  readonly keys: EtcdKeys;
  /** Aborts when the store closes. */
  readonly closed: AbortSignal;
}

/** Milliseconds between two attempts, in turn with gRPC's own (at most 500) well below a second. */
const retryMs = 150;
/** A stream that is not confirmed within this many milliseconds is given up. */
const createdWithinMs = 5000;

/**
 * One watch. Its stream may break at any instant; it resumes after the last revision that was handed out. The consumer's pull is
 * passed on to etcd by gRPC's flow control, so a slow one holds little here.
 */
export async function* watchEtcd(
  context: EtcdWatchContext,
  prefix: string,
  { afterRevision, signal }: WatchOptions,
): AsyncGenerator<ChangeBatch, void, undefined> {
  checkPrefix(prefix);
  checkRevision('afterRevision', afterRevision);
  const { members, closed } = context;
  const restored = members.lineage.ended;
  const ended = AbortSignal.any([signal, closed, restored]);
  let cursor = afterRevision;
  while (!ended.aborted) {
    let member: Member | undefined;
    try {
      await orEnded(notBefore(members, cursor), ended);
      member = members.current();
      for await (const batch of stream({ ...context, ended }, { prefix, member, cursor })) {
        cursor = batch.revision;
        yield batch;
        if (signal.aborted) return;
      }
    } catch (error) {
      if (ended.aborted) break;
      const failure = etcdError(error, 'read');
      if (failure.code !== 'unavailable' || isRefusal(error)) throw failure;
    }
    if (member !== undefined) members.turnFrom(member);
    await sleep(retryMs, undefined, { signal: ended, ref: false }).catch(() => undefined);
  }
  if (signal.aborted) return;
  if (closed.aborted) throw new StoreError('closed', 'The store was closed.');
  throw restored.reason;
}

/** A store older than what the watcher has seen was restored; asked of all members, since one alone may lag. */
async function notBefore(members: EtcdMembers, cursor: number): Promise<void> {
  const revision = await members.revision();
  if (revision >= cursor) return;
  const message = `etcd is at revision ${revision}, before ${cursor}: it went back, or never was there. List again.`;
  throw new StoreError('compacted', message);
}

/** An ended watch does not wait for calls that may take seconds. */
function orEnded<T>(work: Promise<T>, ended: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const end = () => reject(ended.reason as Error);
    ended.addEventListener('abort', end, { once: true });
    if (ended.aborted) end();
    void work.then(resolve, reject).finally(() => ended.removeEventListener('abort', end));
  });
}

interface From {
  readonly prefix: string;
  readonly member: Member;
  readonly cursor: number;
}

async function* stream(
  context: EtcdWatchContext & { readonly ended: AbortSignal },
  { prefix, member, cursor }: From,
): AsyncGenerator<ChangeBatch, void, undefined> {
  const { members, keys, ended } = context;
  // etcd cancels a stream that requires a leader when its member has lost sight of one.
  const duplex = (await member.client.watchClient.watch({
    interceptors: [requireLeader],
  })) as unknown as WatchStream;
  const cancel = () => {
    // Ended first, so that etcd3 does not take the cancellation for a failure of the member.
    duplex.end();
    duplex.cancel();
  };
  const late = setTimeout(cancel, createdWithinMs);
  ended.addEventListener('abort', cancel);
  // After the loop nobody listens any more, and cancelling is an error to the stream.
  duplex.on('error', () => undefined);
  try {
    if (ended.aborted) return;
    duplex.write({
      create_request: {
        ...keys.range(prefix),
        // One revision too early on purpose: compacted exactly at its first revision, etcd (before 3.5.19) drops a deletion
        // there and says nothing. Asked for one more, it says that it compacted.
        start_revision: Math.max(1, cursor),
        prev_kv: true,
        fragment: true,
      },
    });
    const events = new Events(keys, cursor);
    for await (const response of duplex as AsyncIterable<IWatchResponse>) {
      if (response.canceled) throw canceled(response);
      if (response.created) {
        clearTimeout(late);
        if (toRevision(response.header.revision) < cursor) await orEnded(notBefore(members, cursor), ended);
      }
      yield* events.take(response);
    }
  } finally {
    clearTimeout(late);
    ended.removeEventListener('abort', cancel);
    cancel();
  }
}

const requireLeader: NonNullable<CallOptions['interceptors']>[number] = (options, nextCall) =>
  new InterceptingCall(nextCall(options), {
    start: (metadata, listener, next) => {
      metadata.set('hasleader', 'true');
      next(metadata, listener);
    },
  });

function canceled({ compact_revision: compacted, cancel_reason: reason }: IWatchResponse): Error {
  if (Number(compacted) > 0) {
    return new StoreError('compacted', `etcd compacted its history up to revision ${compacted}: list again.`);
  }
  return new Error(reason === '' ? 'etcd cancelled the watch' : reason);
}

/** Puts events together to whole revisions: a big answer comes in fragments, which may end within one. */
class Events {
  private open: { revision: number; changes: Change[] } | undefined;

  constructor(
    private readonly keys: EtcdKeys,
    private readonly afterRevision: number,
  ) {}

  *take({ events, fragment }: IWatchResponse): Generator<ChangeBatch> {
    for (const event of events) {
      const revision = toRevision(event.kv.mod_revision);
      if (revision <= this.afterRevision) continue;
      if (this.open !== undefined && this.open.revision !== revision) yield this.open;
      if (this.open?.revision !== revision) this.open = { revision, changes: [] };
      this.open.changes.push(this.change(event));
    }
    if (fragment || this.open === undefined) return;
    yield this.open;
    this.open = undefined;
  }

  private change({ type, kv, prev_kv: before }: IEvent): Change {
    const previous = before ? this.keys.entry(before) : undefined;
    // etcd3's types say "Put" and "Delete", its decoder says "PUT" and "DELETE".
    return type.toUpperCase() === 'DELETE'
      ? { kind: 'delete', key: this.keys.name(kv.key), previous }
      : { kind: 'put', entry: this.keys.entry(kv), previous };
  }
}
