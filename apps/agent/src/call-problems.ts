import { judgeError, type Problem } from '@bulwark/agent';
import type { CallTarget } from './call-target.js';

export function bodyTooSlow(service: string, policy: string | undefined): Problem {
  return {
    type: 'urn:bulwark:problem:request-timeout',
    title: 'The request did not arrive in time',
    status: 408,
    detail: `The body of the call to ${service} was still coming when the call's time was used up. Raise the policy's timeout for large transfers.`,
    service,
    reason: 'request-timeout',
    ...(policy !== undefined && { policy }),
  };
}

/** Names the address that was tried: where it comes from is the first thing to look at. */
export function unreachable(
  { service, host, port, mapped }: Pick<CallTarget, 'service' | 'host' | 'port' | 'mapped'>,
  failed: { error: unknown; attempts: number; policy: string | undefined },
): Problem {
  const at = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const misnamed = !mapped && judgeError(failed.error).transport === 'connect';
  const hint = ` No --upstream names ${service}, so it was dialled as given: if it is elsewhere, say --upstream ${service}=URL.`;
  return {
    type: 'urn:bulwark:problem:unreachable',
    title: 'The dependency could not be reached or broke off',
    status: 502,
    detail: `The call to ${service} failed after ${failed.attempts} attempt(s) at ${at}: ${causeOf(failed.error)}.${misnamed ? hint : ''}`,
    service,
    reason: 'failure',
    ...(failed.policy !== undefined && { policy: failed.policy }),
  };
}

/** The code of an error, and what it says where the code alone does not. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error && 'code' in error && typeof error.code === 'string')) return 'no answer';
  return error.code === 'BAD_ANSWER' ? `${error.code}, ${error.message}` : error.code;
}
