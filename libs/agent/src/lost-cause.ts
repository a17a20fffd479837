import { status as Status, type StatusObject } from '@grpc/grpc-js';

/** System error codes as people say them. */
const WORDS: readonly (readonly [code: string, words: string])[] = [
  ['ECONNREFUSED', 'connection refused'],
  ['ENOTFOUND', 'the name is not known'],
  ['EAI_AGAIN', 'the name cannot be looked up now'],
  ['ETIMEDOUT', 'no answer'],
  ['EHOSTUNREACH', 'no route to the host'],
  ['ENETUNREACH', 'no route to the network'],
  ['ECONNRESET', 'connection reset'],
];

/** Why a stream ended, as one short cause: gRPC nests the transport's own words in several sentences. */
export function lostCause(end: Pick<StatusObject, 'code' | 'details'>): string {
  const known = WORDS.find(([code]) => end.details.includes(code));
  if (known !== undefined) return known[1];
  if (end.details.includes('Protocol error')) return 'what answers speaks no gRPC; is this the gRPC port?';
  if (end.details.includes('Name resolution failed')) return 'the name cannot be resolved';
  const details = end.details
    .replace(/^No connection established\. /, '')
    .replace(/Last error: (null\.? ?)?(Error: )?/, '')
    .replace(/\.? ?Resolution note: ?/, '; ')
    .replace(/[;.\s]+$/, '');
  if (end.code === Status.UNAVAILABLE) return details || 'not available';
  return details === '' ? `${Status[end.code]}` : `${Status[end.code]}: ${details}`;
}
