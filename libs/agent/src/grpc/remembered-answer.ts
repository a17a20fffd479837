import type { Metadata } from '@grpc/grpc-js';
import { createHash } from 'node:crypto';
import { readMetadata } from '../judge-grpc.js';
import { identityOf } from '../last-good-key.js';
import type { CallMethod } from './call-method.js';

/**
 * Names the answer of a unary call for last-good: the method, the request's bytes, who asks, and what the policy varies
 * by. Undefined = the request cannot be written, so there will be no answer.
 */
export function grpcCacheKey(
  method: CallMethod,
  call: { readonly message: unknown; readonly metadata: Metadata },
  varyBy: readonly string[],
): string | undefined {
  const header = readMetadata(call.metadata);
  let request: Buffer;
  try {
    request = method.serialize(call.message);
  } catch {
    return undefined;
  }
  const varied = varyBy
    .filter((name) => name.startsWith('header:'))
    .map((name) => `${name}=${header(name.slice('header:'.length)) ?? ''}`);
  const digest = createHash('sha256').update(request).digest('base64url');
  return JSON.stringify(['grpc', method.path, digest, identityOf(header), ...varied]);
}
