import { readRecord } from '../objects/json-value.js';
import type { StoreMirror } from '../index/store-mirror.js';
import type { ReplicaPlace } from '../distribution/agent-registry.js';

export const MEMBER_PREFIX = '/bulwark/members/';
export const CLAIM_PREFIX = '/bulwark/claims/';
export const CLAIM_KEY = `${CLAIM_PREFIX}all`;

/** A live replica. */
export interface Member {
  readonly id: string;
  /** Where its gRPC port is reached. */
  readonly grpc: string;
}

/** Who is here, as the store says, and who decides. */
export class Members {
  constructor(
    private readonly options: {
      readonly self: string;
      readonly members: StoreMirror;
      readonly claims: StoreMirror;
      /** Addresses given by hand. */
      readonly peers: readonly string[];
    },
  ) {}

  /** Addresses of the other replicas, each once. */
  others(): readonly string[] {
    const found = this.all().filter(({ id }) => id !== this.options.self);
    return [...new Set([...found.map(({ grpc }) => grpc), ...this.options.peers])];
  }

  place(): ReplicaPlace {
    const ids = [...new Set([...this.all().map(({ id }) => id), this.options.self])].sort();
    return { index: ids.indexOf(this.options.self), count: ids.length };
  }

  /** The replica that holds the claim; undefined = nobody at this moment. */
  decider(): Member | undefined {
    return parse(this.options.claims.entries.get(CLAIM_KEY)?.value);
  }

  private all(): Member[] {
    return [...this.options.members.entries.values()].flatMap(({ value }) => parse(value) ?? []);
  }
}

export function memberText(member: Member): string {
  return JSON.stringify({ ...member, since: new Date().toISOString() });
}

function parse(value: string | undefined): Member | undefined {
  const { id, grpc } = readRecord(value) ?? {};
  return typeof id === 'string' && typeof grpc === 'string' ? { id, grpc } : undefined;
}
