import type { NextCall } from '@grpc/grpc-js';

/** One call as interceptors see it. */
export type InterceptedCall = ReturnType<NextCall>;

export type MessageContext = Parameters<InterceptedCall['sendMessageWithContext']>[0];
export type CallListener = NonNullable<Parameters<InterceptedCall['start']>[1]>;
