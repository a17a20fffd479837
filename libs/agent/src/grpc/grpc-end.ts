import { type Metadata, status as Status, type StatusObject } from '@grpc/grpc-js';
import type { Judgement } from '@bulwark/resilience';
import { LAST_GOOD_MAX_BYTES } from '../last-good-key.js';
import { GRPC_METADATA, judgeGrpc, readMetadata } from '../judge-grpc.js';

/** An attempt that ended with OK. */
export interface GrpcAnswer {
  readonly status: StatusObject;
  /** The headers of a unary call; other calls have handed theirs on as they came. */
  readonly headers: Metadata | undefined;
  /** Of a call with a single answer; null = none came. */
  readonly message: unknown;
  /** The message as it came, where answers are caught to be remembered. */
  readonly bytes: Buffer | undefined;
}

/**
 * Why a status is not the dependency's word: `request` = the request could not be written; `deadline` = the caller's
 * own time was up.
 */
export type OwnFault = 'request' | 'deadline';

/** An attempt that ended with any other status. */
export class GrpcEndError extends Error {
  override readonly name = 'GrpcEndError';

  constructor(
    readonly status: StatusObject,
    readonly own?: OwnFault,
  ) {
    super(status.details);
  }
}

const MARKS = [GRPC_METADATA.rejected, GRPC_METADATA.degraded];

export function hasMarks(end: StatusObject): boolean {
  return MARKS.some((mark) => end.metadata.get(mark).length > 0);
}

/** The end as told by someone whose marks are not believed. A pushback is ordinary protocol and stays. */
export function withoutMarks(end: StatusObject): StatusObject {
  const metadata = end.metadata.clone();
  for (const mark of MARKS) metadata.remove(mark);
  return { ...end, metadata };
}

export function judgeAnswered({ status, bytes }: GrpcAnswer): Judgement {
  const read = readMetadata(status.metadata);
  // What a layer below had from its memory is no fresh answer.
  const keep =
    bytes !== undefined && bytes.byteLength <= LAST_GOOD_MAX_BYTES && !read(GRPC_METADATA.degraded);
  return { ...judgeGrpc(status.code, read), keep };
}

/** An error that is no status: the attempt could not even be begun, say on a closed channel. It is nobody's failure. */
export function judgeEnded(error: unknown, countsCancelled: boolean): Judgement {
  if (!(error instanceof GrpcEndError) || error.own === 'request') return {};
  const { code, metadata } = error.status;
  const judgement = judgeGrpc(code, readMetadata(metadata));
  if (error.own === 'deadline') return { ...judgement, ignore: true };
  // The application did not cancel it, or the engine would have ended it: a server that went away did, and a fallback
  // may stand in.
  const wentAway = code === Status.CANCELLED && !countsCancelled;
  return wentAway ? { ...judgement, failure: true, ignore: true } : judgement;
}
