import { ConnectResponse } from '@bulwark/protocol';
import type { UpdatePlan } from './agent-delivery.js';

export interface UpdateBytes {
  readonly nonce: string;
  readonly bytes: Buffer;
}

const MAX_KEPT = 256;

/**
 * Makes the bytes of updates. Agents that need the same message get the same bytes, serialised once; its nonce names the
 * content, so that sharing it is harmless: an agent has one message in flight at most.
 */
export class UpdateEncoder {
  private readonly kept = new Map<string, UpdateBytes>();
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
    this.kept.set(key, made);
    if (this.kept.size > MAX_KEPT) this.kept.delete(this.kept.keys().next().value ?? '');
    return made;
  }
}

function contentKey({ version, full, resources, removed }: UpdatePlan, serviceAgents: number): string {
  const parts = resources.map(
    ({ name, uid, generation }) => `${name?.namespace}/${name?.name}/${uid}/${generation}`,
  );
  const gone = removed.map(({ namespace, name }) => `-${namespace}/${name}`);
  return [version.era, version.revision, full, serviceAgents, ...parts, ...gone].join(' ');
}
