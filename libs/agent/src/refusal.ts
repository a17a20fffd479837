import { status as Status, type StatusObject } from '@grpc/grpc-js';

/** The control plane heard this agent and said no. Another try alone will not help; a person must do something. */
export interface Refusal {
  readonly grpcStatus: string;
  readonly message: string;
  /** What to do. */
  readonly hint: string;
}

const HINTS: Partial<Record<Status, string>> = {
  [Status.ALREADY_EXISTS]:
    'An agent of this namespace, service and instance is already connected: give this one another instance id, or stop the other',
  [Status.INVALID_ARGUMENT]: 'Correct the namespace, service, instance or labels of this agent',
  [Status.UNAUTHENTICATED]: 'Give this agent valid credentials',
  [Status.PERMISSION_DENIED]: 'The credentials are not for this namespace and service',
  [Status.UNIMPLEMENTED]:
    'What answers at this address is no control plane of this version: check the address (the gRPC port, not the HTTP port) and upgrade one side',
};

/** The refusal in a stream's end, or undefined when it was an ordinary loss. */
export function refusalOf(end: Pick<StatusObject, 'code' | 'details'>): Refusal | undefined {
  const hint = HINTS[end.code];
  if (hint === undefined) return undefined;
  return { grpcStatus: Status[end.code], message: end.details, hint };
}
