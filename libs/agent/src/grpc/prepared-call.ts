import { AsyncLocalStorage } from 'node:async_hooks';
import type { InterceptorOptions, Metadata } from '@grpc/grpc-js';
import type { Attempt, CallRequest } from '@bulwark/resilience';
import type { CallEnvironment, CallPlan } from '../call-plan.js';
import { attemptHeaders, HEADER } from '../headers.js';
import { GRPC_METADATA } from '../judge-grpc.js';
import type { GrpcGuard, GrpcOptions } from './grpc-options.js';
import { grpcRequest, mayBeRemembered, ownDeadlineUnixMs } from './grpc-request.js';

export interface GrpcEnvironment extends CallEnvironment {
  /** Monotonic. */
  readonly nowMs: () => number;
}

type Within = ReturnType<typeof AsyncLocalStorage.snapshot>;

const DIRECTLY: Within = (work, ...given) => work(...given);

/** What was chosen for a call before it is made. */
export interface PreparedCall {
  readonly service: string;
  readonly plan: CallPlan;
  readonly request: CallRequest;
  /** As the application gave it. */
  readonly metadata: Metadata;
  /** Its answer may be remembered, were it a unary one. */
  readonly remember: boolean;
  /** What it sends may be sent once more. */
  readonly repeatable: boolean;
  /** A policy's simplified operation, where it is one of gRPC's. */
  readonly simplified: string | undefined;
  /** Works where the application made the call: stand-ins are begun by timers and by other calls' ends. */
  readonly within: Within;
  metadataOf(attempt: Attempt): Metadata;
  optionsOf(attempt: Attempt): InterceptorOptions;
}

export function prepareCall(
  environment: GrpcEnvironment,
  client: GrpcOptions,
  call: {
    readonly service: string;
    readonly options: InterceptorOptions;
    readonly metadata: Metadata;
    readonly guard: GrpcGuard;
  },
): PreparedCall {
  const { service, options, metadata, guard } = call;
  const request = grpcRequest({ ...call, nowUnixMs: environment.unixMs() }, client);
  const plan = environment.plan(service, request.operation);
  const callerAttempt = Math.max(request.callerAttempt ?? 1, environment.inherited().callerAttempt ?? 1);
  const simplified = simplifiedOperation(plan);
  return {
    service,
    plan,
    request,
    metadata,
    remember: plan.lastGood !== undefined && mayBeRemembered(request, guard, client),
    repeatable: callerAttempt === 1 && mayBeRepeated(plan, request),
    simplified,
    // The agent itself brings attempts there; a snapshot costs more than all else here.
    within:
      simplified === undefined && guard.fallback === undefined ? DIRECTLY : AsyncLocalStorage.snapshot(),
    metadataOf: (attempt) => {
      const attempted = metadata.clone();
      const { [HEADER.attempt]: number } = attemptHeaders(attempt, callerAttempt);
      if (number !== undefined) attempted.set(GRPC_METADATA.attempt, number);
      const { idempotencyKey } = guard;
      if (idempotencyKey !== undefined) attempted.set(GRPC_METADATA.idempotencyKey, idempotencyKey);
      return attempted;
    },
    optionsOf: ({ timeoutMs }) => {
      if (!Number.isFinite(timeoutMs)) return options;
      const endUnixMs = Math.ceil(environment.unixMs() + Math.max(0, timeoutMs));
      return { ...options, deadline: Math.min(endUnixMs, ownDeadlineUnixMs(options)) };
    },
  };
}

/** Whether the policy retries calls like this one at all; only then is what it sends kept. */
function mayBeRepeated({ settings }: CallPlan, request: CallRequest): boolean {
  const retry = settings?.retry;
  if (retry === undefined || settings?.mode === 'shadow') return false;
  return request.idempotencyKey !== undefined || retry.methods.has(request.method ?? '');
}

function simplifiedOperation(plan: CallPlan): string | undefined {
  const found = plan.settings?.fallbacks.find((fallback) => fallback.kind === 'simplified');
  return found !== undefined && /^[^ /]+\/[^ /]+$/.test(found.operation) ? found.operation : undefined;
}
