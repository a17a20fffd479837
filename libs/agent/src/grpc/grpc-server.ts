import { AsyncLocalStorage } from 'node:async_hooks';
import {
  Metadata,
  type Responder,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  type ServerListener,
  status as Status,
} from '@grpc/grpc-js';
import { HEADER, type ReadHeader } from '../headers.js';
import { GRPC_METADATA, PUSHBACK_NEVER, readMetadata } from '../judge-grpc.js';
import { rejectionOf } from './grpc-outcome.js';
import { type GrpcPeer, isLoopback } from './grpc-peer.js';

export interface GrpcServerOptions {
  /** Whose attempt numbers are believed; those of others are taken away. Default: loopback addresses only. */
  readonly trusted?: (peer: GrpcPeer) => boolean;
}

export interface GrpcServerEnvironment {
  readonly answering: <T>(read: ReadHeader, handler: () => T) => T;
  readonly answerHeaders: () => Record<string, string>;
  readonly unixMs: () => number;
}

const PASSED = 'The deadline of the call had passed when it came';

type EndStatus = Parameters<ServerInterceptingCallInterface['sendStatus']>[0];
type Within = ReturnType<typeof AsyncLocalStorage.snapshot>;

/**
 * A server interceptor that joins every call with the calls its handler makes meanwhile: deadline and attempt number go
 * down, used-up retries and degraded levels go up. A call whose deadline has passed does not reach its handler.
 */
export function grpcServerInterceptor(
  environment: GrpcServerEnvironment,
  { trusted = isLoopback }: GrpcServerOptions = {},
): ServerInterceptor {
  return (_method, call) => {
    // Where the handler runs; undefined before the call's metadata was read.
    let within: Within | undefined;
    const leftMs = deadlineUnixMs(call) - environment.unixMs();
    const responder: Responder = {
      start: (next) => {
        if (leftMs <= 0) {
          call.sendStatus(rejectionOf({ reason: 'deadline', details: PASSED }));
          return;
        }
        next(
          joined((metadata) => {
            if (!believes(trusted, call)) metadata.remove(GRPC_METADATA.attempt);
            within = environment.answering(readerOf(metadata, leftMs), () => AsyncLocalStorage.snapshot());
            return within;
          }),
        );
      },
      sendStatus: (end, next) => next(withMarks(end, within?.(() => environment.answerHeaders()) ?? {})),
    };
    return new ServerInterceptingCall(call, responder);
  };
}

/** Everything the handler hears reaches it within its call. */
function joined(enter: (metadata: Metadata) => Within): ServerListener {
  let within: Within = (work, ...rest) => work(...rest);
  return {
    onReceiveMetadata: (metadata, next) => {
      within = enter(metadata);
      within(next, metadata);
    },
    onReceiveMessage: (message: unknown, next) => within(next, message),
    onReceiveHalfClose: (next) => within(next),
  };
}

/** The marks of the call, read as headers are. `grpc-timeout` is ordinary protocol and needs no trust. */
function readerOf(metadata: Metadata, leftMs: number): ReadHeader {
  const read = readMetadata(metadata);
  const deadline = Number.isFinite(leftMs) ? String(Math.ceil(leftMs)) : undefined;
  return (name) => (name === HEADER.deadline ? deadline : read(name));
}

function believes(trusted: (peer: GrpcPeer) => boolean, call: ServerInterceptingCallInterface): boolean {
  const { remoteAddress: address } = call.getConnectionInfo();
  try {
    return trusted({ address, certificate: call.getAuthContext().sslPeerCertificate });
  } catch {
    // Who cannot be judged is not believed; the call itself goes on.
    return false;
  }
}

function withMarks(end: EndStatus, marks: Record<string, string>): EndStatus {
  const degraded = marks[HEADER.degraded];
  const usedUp = end.code !== Status.OK && marks[HEADER.retry] !== undefined;
  if (degraded === undefined && !usedUp) return end;
  const metadata = end.metadata?.clone() ?? new Metadata();
  if (usedUp) metadata.set(GRPC_METADATA.pushback, PUSHBACK_NEVER);
  if (degraded !== undefined) {
    const own = metadata.get(GRPC_METADATA.degraded);
    metadata.set(GRPC_METADATA.degraded, [...own, degraded].join(', '));
  }
  return { ...end, metadata };
}

function deadlineUnixMs(call: ServerInterceptingCallInterface): number {
  const deadline = call.getDeadline();
  return deadline instanceof Date ? deadline.getTime() : deadline;
}
