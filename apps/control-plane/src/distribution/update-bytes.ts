import { ConnectResponse } from '@bulwark/protocol';
import type { UpdatePlan } from './agent-delivery.js';

export interface UpdateBytes {
  readonly nonce: string;
  readonly bytes: Buffer;
}

const MAX_KEPT = 256;
/** Of all that are kept: whole snapshots of thousands of policies have megabytes each. */
const MAX_KEPT_BYTES = 64 * 1024 * 1024;

/**
 * Makes the bytes of updates. Agents that need the same message get the same bytes, serialised once; its nonce names the
 * content, so that sharing it is harmless: an agent has one message in flight at most.
 */
export class UpdateEncoder {
  private readonly kept = new Map<string, UpdateBytes>();
  private keptBytes = 0;
  private count = 0;

  /** @param prefix makes nonces of one process differ from another's */
  constructor(private readonly prefix: string) {}

  encode(plan: UpdatePlan, serviceAgents: number): UpdateBytes {
    const key = contentKey(plan, serviceAgents);
    const known = this.kept.get(key);
    if (known !== undefined) return known;
    const nonce = `${this.prefix}-${(this.count += 1)}`;
    const value = {
      ...plan,
      resources: [...plan.resources],
      removed: [...plan.removed],
      nonce,
      serviceAgents,
      traceparent: '',
    };
    const bytes = Buffer.from(ConnectResponse.encode({ message: { $case: 'update', value } }).finish());
    const made = { nonce, bytes };
    this.keep(key, made);
    return made;
  }

  /** The oldest go, but never the one that was just made. */
  private keep(key: string, made: UpdateBytes): void {
    this.kept.set(key, made);
    this.keptBytes += made.bytes.length;
    for (const [oldest, { bytes }] of this.kept) {
      if (oldest === key || (this.kept.size <= MAX_KEPT && this.keptBytes <= MAX_KEPT_BYTES)) return;
      this.kept.delete(oldest);
      this.keptBytes -= bytes.length;
    }
  }

  /** Bytes kept for further agents. */
  get size(): number {
    return this.keptBytes;
  }
}

function contentKey({ version, full, resources, removed }: UpdatePlan, serviceAgents: number): string {
  const parts = resources.map(
    ({ name, uid, generation }) => `${name?.namespace}/${name?.name}/${uid}/${generation}`,
  );
  const gone = removed.map(({ namespace, name }) => `-${namespace}/${name}`);
  return [version.era, version.revision, full, serviceAgents, ...parts, ...gone].join(' ');
}
