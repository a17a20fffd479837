import {
  PeerServiceService,
  type ForceBreakerRequest,
  type ForceBreakerResponse,
  type ListVirtualRequest,
  type ListVirtualResponse,
} from '@bulwark/protocol';
import { status, type sendUnaryData, type Server, type ServerUnaryCall } from '@grpc/grpc-js';
import { badRequest } from '../errors/api-error.js';
import { grpcStatusOf } from '../errors/grpc-status.js';
import type { VirtualKind } from './peer-clients.js';
import type { Fleet } from './fleet.js';
import type { ForwardCall } from './forward-stream.js';
import { forcedFromMessage } from './verdict-messages.js';

export interface PeerServiceParts {
  readonly fleet: Fleet;
  own(kind: VirtualKind, namespace: string): readonly unknown[];
}

/** What other replicas ask of this one. */
export function addPeerService(server: Server, parts: PeerServiceParts): void {
  const { fleet } = parts;
  server.addService(PeerServiceService, {
    forward: (call: ForwardCall) => fleet.accept(call),
    listVirtual: (
      call: ServerUnaryCall<ListVirtualRequest, ListVirtualResponse>,
      answer: sendUnaryData<ListVirtualResponse>,
    ) => {
      const { kind, namespace } = call.request;
      if (kind !== 'agents' && kind !== 'breakers' && kind !== 'tally') {
        return answer({ code: status.INVALID_ARGUMENT, details: `"${kind}" is no kind of this server` });
      }
      answer(null, {
        objects: parts.own(kind, namespace).map((object) => Buffer.from(JSON.stringify(object))),
      });
    },
    forceBreaker: (
      call: ServerUnaryCall<ForceBreakerRequest, ForceBreakerResponse>,
      answer: sendUnaryData<ForceBreakerResponse>,
    ) => {
      force(fleet, call.request).then(
        () => answer(null, {}),
        (error: unknown) => answer(grpcStatusOf(error)),
      );
    },
  });
}

async function force(fleet: Fleet, { key, state, forMs, by, reason }: ForceBreakerRequest): Promise<void> {
  const wanted = forcedFromMessage(state);
  if (key === undefined || (wanted !== undefined && forMs === 0))
    throw badRequest('a key and a time are needed');
  await fleet.force(key, wanted && { state: wanted, remainingMs: forMs, by, reason });
}
