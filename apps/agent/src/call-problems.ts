import type { Problem } from '@bulwark/agent';

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

export function unreachable(
  service: string,
  failed: { error: unknown; attempts: number; policy: string | undefined },
): Problem {
  return {
    type: 'urn:bulwark:problem:unreachable',
    title: 'The dependency could not be reached or broke off',
    status: 502,
    detail: `The call to ${service} failed after ${failed.attempts} attempt(s): ${causeOf(failed.error)}.`,
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
