import { CLIENT_CHANNEL_OPTIONS, PeerServiceClient, type ForceBreakerRequest } from '@bulwark/protocol';
import { credentials, Metadata, status, type ServiceError } from '@grpc/grpc-js';
import { ApiError, unavailable } from '../errors/api-error.js';

const LIST_MS = 1_500;
const FORCE_MS = 5_000;

export type VirtualKind = 'agents' | 'breakers' | 'tally';

export interface Answers {
  readonly objects: readonly unknown[];
  /** Addresses that did not answer. */
  readonly silent: readonly string[];
}

/** Connections to other replicas, one an address. */
export class PeerClients {
  private readonly clients = new Map<string, PeerServiceClient>();

  client(address: string): PeerServiceClient {
    const known = this.clients.get(address);
    if (known !== undefined) return known;
    const made = new PeerServiceClient(address, credentials.createInsecure(), CLIENT_CHANNEL_OPTIONS);
    this.clients.set(address, made);
    return made;
  }

  /** What these replicas hold of a kind. One that does not answer within 1.5 s is told apart. */
  async list(addresses: readonly string[], kind: VirtualKind, namespace = ''): Promise<Answers> {
    const silent: string[] = [];
    const lists = await Promise.all(
      addresses.map((address) =>
        this.listOne(address, kind, namespace).catch(() => {
          silent.push(address);
          return [];
        }),
      ),
    );
    return { objects: lists.flat(), silent };
  }

  async force(address: string, request: ForceBreakerRequest): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const deadline = { deadline: Date.now() + FORCE_MS };
      this.client(address).forceBreaker(request, new Metadata(), deadline, (error) =>
        error === null ? resolve() : reject(fromPeer(error)),
      );
    });
  }

  /** Forgets connections to replicas that are no more. */
  keepOnly(addresses: readonly string[]): void {
    for (const [address, client] of this.clients) {
      if (addresses.includes(address)) continue;
      client.close();
      this.clients.delete(address);
    }
  }

  close(): void {
    this.keepOnly([]);
  }

  private listOne(address: string, kind: VirtualKind, namespace: string): Promise<unknown[]> {
    return new Promise((resolve, reject) => {
      const deadline = { deadline: Date.now() + LIST_MS };
      this.client(address).listVirtual({ kind, namespace }, new Metadata(), deadline, (error, response) => {
        if (error !== null) return reject(error);
        try {
          resolve(response.objects.map((bytes) => JSON.parse(bytes.toString('utf8')) as unknown));
        } catch (unreadable) {
          reject(new Error(`${address} sent what is no JSON`, { cause: unreadable }));
        }
      });
    });
  }
}

function fromPeer(error: ServiceError): ApiError {
  if (error.code === status.NOT_FOUND) return new ApiError('NotFound', error.details);
  if (error.code === status.INVALID_ARGUMENT) return new ApiError('BadRequest', error.details);
  return unavailable('the deciding replica does not answer; try again', { cause: error });
}
