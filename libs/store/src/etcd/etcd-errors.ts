import { StoreError, type StoreErrorCode } from '../store-error.js';

/**
 * The one place that reads etcd's and gRPC's errors. etcd3 drops the status code on the way, so the message is what is
 * left: "14 UNAVAILABLE: …" from gRPC, "etcdserver: …" from etcd (its texts: api/v3rpc/rpctypes/error.go).
 */

/** Whether a call that failed half way may have changed something. */
export type CallKind = 'read' | 'write';

interface Known {
  readonly text: string;
  readonly code: StoreErrorCode;
  readonly hint: string;
}

/** These say what became of a call, whatever its kind: with "unavailable", nothing was done. */
const known: readonly Known[] = [
  { text: 'required revision has been compacted', code: 'compacted', hint: 'list again' },
  { text: 'required revision is a future revision', code: 'compacted', hint: 'etcd went back: list again' },
  { text: 'requested lease not found', code: 'lease-lost', hint: 'ask for a new lease' },
  { text: 'request is too large', code: 'invalid', hint: "etcd's --max-request-bytes is below its default" },
  { text: 'too many operations', code: 'invalid', hint: "etcd's --max-txn-ops is below its default" },
  {
    text: 'database space exceeded',
    code: 'unavailable',
    hint: 'compact and defragment etcd, then disarm its alarm',
  },
  {
    text: 'etcdserver: no leader',
    code: 'unavailable',
    hint: 'most of its members must run and see each other',
  },
  { text: 'etcdserver: too many requests', code: 'unavailable', hint: 'try again later' },
  { text: 'etcdserver: corrupt cluster', code: 'unavailable', hint: 'etcd refuses to work: see its log' },
  { text: 'permission denied', code: 'unavailable', hint: 'etcd wants a user with more rights' },
  { text: 'user name is empty', code: 'unavailable', hint: 'etcd wants a user' },
  { text: 'invalid auth token', code: 'unavailable', hint: 'etcd wants a user' },
  { text: 'No connection established', code: 'unavailable', hint: '' },
  { text: 'Name resolution failed', code: 'unavailable', hint: '' },
  { text: 'Channel closed before call started', code: 'unavailable', hint: '' },
  { text: 'the client was already closed', code: 'unavailable', hint: '' },
  // gRPC could not even choose a connection within the time.
  { text: 'waiting for LB pick', code: 'unavailable', hint: '' },
];

const refusals = ['permission denied', 'user name is empty', 'invalid auth token'];

/** The StoreError for whatever a call to etcd failed with. */
export function etcdError(error: unknown, kind: CallKind): StoreError {
  if (error instanceof StoreError) return error;
  const text = messageOf(error);
  const options = { cause: error };
  const match = known.find((each) => text.toLowerCase().includes(each.text.toLowerCase()));
  if (match !== undefined) {
    return new StoreError(match.code, `etcd: ${text}${match.hint === '' ? '' : ` (${match.hint})`}`, options);
  }
  if (kind === 'read') return new StoreError('unavailable', `etcd did not answer: ${text}`, options);
  const message = `etcd did not answer: ${text}. The write may or may not have happened.`;
  return new StoreError('unknown-outcome', message, options);
}

/** Waiting does not help: a person has to change something in etcd. */
export function isRefusal(error: unknown): boolean {
  const text = messageOf(error);
  return refusals.some((each) => text.includes(each));
}

function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  // What gRPC adds when it has nothing to add.
  return text.replace(/\.? Resolution note: $/, '');
}
