import { type CallOptions, type InterceptorOptions, type Metadata, propagate } from '@grpc/grpc-js';
import type { CallRequest } from '@bulwark/resilience';
import { readIncomingMarks } from '../headers.js';
import { readMetadata } from '../judge-grpc.js';
import { type GrpcGuard, type GrpcOptions, METHOD_OF_LEVEL, operationOf } from './grpc-options.js';

/** When the caller itself gives up, Unix milliseconds; Infinity = never. A parent call's deadline counts too. */
export function ownDeadlineUnixMs(options: CallOptions): number {
  const own = unixMs(options.deadline);
  const { parent, propagate_flags: flags = propagate.DEFAULTS } = options;
  if (parent === undefined || (flags & propagate.DEADLINE) === 0) return own;
  return Math.min(own, unixMs(parent.getDeadline()));
}

/** What the engine must know of a call; its cancellation and its key for last-good come later. */
export function grpcRequest(
  call: {
    readonly options: InterceptorOptions;
    readonly metadata: Metadata;
    readonly guard: GrpcGuard;
    readonly nowUnixMs: number;
  },
  client: GrpcOptions,
): CallRequest {
  const { options, guard } = call;
  const operation = operationOf(options.method_definition.path);
  const level = guard.idempotency ?? client.idempotency?.[operation] ?? 'IDEMPOTENCY_UNKNOWN';
  // A service that passes all metadata on passes its caller's marks on too.
  const marks = readIncomingMarks(readMetadata(call.metadata));
  const idempotencyKey = guard.idempotencyKey ?? marks.idempotencyKey;
  const deadlineUnixMs = ownDeadlineUnixMs(options);
  return {
    operation,
    method: METHOD_OF_LEVEL[level],
    ...(deadlineUnixMs !== Infinity && { deadlineMs: deadlineUnixMs - call.nowUnixMs }),
    ...(marks.callerAttempt !== undefined && { callerAttempt: marks.callerAttempt }),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
    ...(guard.attributes !== undefined && { attributes: guard.attributes }),
  };
}

/** A method that is known to change nothing, or an answer that the caller itself asks to be remembered. */
export function mayBeRemembered(request: CallRequest, guard: GrpcGuard, client: GrpcOptions): boolean {
  if (guard.cacheKey !== undefined) return true;
  return guard.remember ?? (client.remember === true && request.method === METHOD_OF_LEVEL.NO_SIDE_EFFECTS);
}

/** An unreadable deadline is none, as the transport sees it. */
function unixMs(deadline: CallOptions['deadline']): number {
  const value = deadline instanceof Date ? deadline.getTime() : (deadline ?? Infinity);
  return Number.isNaN(value) ? Infinity : value;
}
