import type { Refused } from '../call-target.js';
import { ownAnswer, type GrpcAnswer } from './grpc-exchange.js';
import type { IncomingGrpcCall } from './grpc-listener.js';
import { STATUS } from './grpc-status.js';

/** A call that no side may pass on. None of them gets better by being repeated. */
export function refusalOf({ word, detail }: Refused): GrpcAnswer {
  return ownAnswer(word === 'loop' ? STATUS.failedPrecondition : STATUS.invalidArgument, detail);
}

/** Undefined = the call has not been here before. */
export function refuseLoop({ headers }: IncomingGrpcCall, pseudonym: string): GrpcAnswer | undefined {
  if (headers.via?.includes(pseudonym) !== true) return undefined;
  const detail = 'The call came back to the sidecar it had left: an upstream points at the proxy.';
  return refusalOf({ kind: 'refused', status: 508, word: 'loop', detail });
}
