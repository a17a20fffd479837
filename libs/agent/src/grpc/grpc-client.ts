import { InterceptingCall, type Interceptor } from '@grpc/grpc-js';
import { GuardedGrpcCall } from './guarded-grpc-call.js';
import type { GrpcOptions } from './grpc-options.js';
import type { GrpcEnvironment } from './prepared-call.js';

/** A client interceptor that runs every call of its client under the policies. */
export function grpcInterceptor(environment: GrpcEnvironment, client: GrpcOptions = {}): Interceptor {
  return (options, nextCall) =>
    new InterceptingCall(new GuardedGrpcCall(environment, client, { options, nextCall }));
}
