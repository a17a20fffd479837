export { ArgumentError, BulwarkError, DeadlineError, RefusedError, RejectedError } from './agent-error.js';
export type { AgentState, BreakerStateView, PolicyStateView, Readiness } from './agent-state.js';
export type { BypassState } from './bypass.js';
export { Bulwark } from './bulwark.js';
export type { CallOptions } from './call-options.js';
export { connect } from './connect.js';
export { connectProblems, isHostPort, type ConnectOptions } from './connect-options.js';
export {
  grpcGuard,
  type GrpcFailure,
  type GrpcGuard,
  type GrpcOptions,
  type IdempotencyLevel,
} from './grpc/grpc-options.js';
export { idempotencyLevels } from './grpc/idempotency-levels.js';
export type { GrpcPeer } from './grpc/grpc-peer.js';
export type { GrpcServerOptions } from './grpc/grpc-server.js';
export { CallerPace } from './caller-pace.js';
export type { FallbackCause } from './call-outcome.js';
export { describeCall, type CallEnvironment, type CallPlan, type FetchGuard } from './call-plan.js';
export { DegradedMembers, joinMembers } from './degraded-members.js';
export type { GuardedInit } from './fetch-call.js';
export { isFinalStatus } from './final-status.js';
export {
  attemptHeaders,
  degradedMarks,
  HEADER,
  type HeaderReader,
  readIncomingMarks,
  rejectionProblem,
  retryAfterSeconds,
  timeoutProblem,
  type IncomingMarks,
  type Problem,
  type ReadHeader,
} from './headers.js';
export { METHOD_OF_LEVEL, operationOf } from './grpc/grpc-options.js';
export { rejectionOf } from './grpc/grpc-outcome.js';
export { judgeError, judgeHttp } from './judge.js';
export { GRPC_METADATA, grpcStatusName, judgeGrpc, PUSHBACK_NEVER, readMetadata } from './judge-grpc.js';
export { LAST_GOOD_MAX_BYTES, lastGoodKey, mayBeKept } from './last-good-key.js';
export { silentLogger, stderrLogger, type Logger } from './logger.js';
export { SystemHost } from './system-host.js';
export { VERSION } from './version.js';
export type {
  Attempt,
  CallAdapter,
  CallerHold,
  CallRequest,
  CallResult,
  EngineEvent,
  GuardSettings,
  Judgement,
  RejectionReason,
} from '@bulwark/resilience';
