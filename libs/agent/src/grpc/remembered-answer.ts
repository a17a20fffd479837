import type { InterceptorOptions, Metadata } from '@grpc/grpc-js';
import { createHash } from 'node:crypto';
import { readMetadata } from '../judge-grpc.js';
import { identityOf } from '../last-good-key.js';

/**
 * Names the answer of a unary call for last-good: the operation, the request's bytes, who asks, and what the policy
 * varies by. Undefined = the request cannot be written, so there will be no answer.
 */
export function grpcCacheKey(
  call: { readonly operation: string; readonly message: unknown; readonly metadata: Metadata },
  options: InterceptorOptions,
  varyBy: readonly string[],
): string | undefined {
  const header = readMetadata(call.metadata);
  let request: Buffer;
  try {
    request = options.method_definition.requestSerialize(call.message);
  } catch {
    return undefined;
  }
  const varied = varyBy
    .filter((name) => name.startsWith('header:'))
    .map((name) => `${name}=${header(name.slice('header:'.length)) ?? ''}`);
  const digest = createHash('sha256').update(request).digest('base64url');
  return JSON.stringify(['grpc', call.operation, digest, identityOf(header), ...varied]);
}
