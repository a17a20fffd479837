import type { IResponseHeader } from 'etcd3';
import { StoreError } from '../store-error.js';

/** What a linear answer must not be older than: taken before the call is made, since answers overtake each other. */
export interface Floor {
  readonly lineage: number;
  readonly raftTerm: bigint;
  readonly revision: number;
}

/**
 * Watches whether etcd is still the one it was. A restored etcd goes back in revisions or in raft terms, or has another
 * cluster id; what was learned before is void then, and the next lineage begins.
 */
export class Lineage {
  private lineage = 1;
  private clusterId: string | undefined;
  private raftTerm = 0n;
  private newestRevision = 0;
  private controller = new AbortController();

  /** Aborts when this lineage ends; a later one has a signal of its own. */
  get ended(): AbortSignal {
    return this.controller.signal;
  }

  floor(): Floor {
    return { lineage: this.lineage, raftTerm: this.raftTerm, revision: this.newestRevision };
  }

  /** To be told every answer that etcd gave after agreement of its members (not of watches). Answers the revision. */
  observe(header: IResponseHeader, floor: Floor): number {
    const revision = toRevision(header.revision);
    const raftTerm = BigInt(header.raft_term);
    if (floor.lineage === this.lineage) {
      const other = this.clusterId !== undefined && this.clusterId !== header.cluster_id;
      if (other || raftTerm < floor.raftTerm || revision < floor.revision) this.begin();
    }
    this.clusterId = header.cluster_id;
    if (raftTerm > this.raftTerm) this.raftTerm = raftTerm;
    if (revision > this.newestRevision) this.newestRevision = revision;
    return revision;
  }

  private begin(): void {
    this.lineage += 1;
    this.raftTerm = 0n;
    this.newestRevision = 0;
    const { controller } = this;
    this.controller = new AbortController();
    controller.abort(
      new StoreError('compacted', 'etcd went back to an older state (a restored backup): list again.'),
    );
  }
}

/** etcd's revisions are 64-bit numbers written as text. */
export function toRevision(text: string): number {
  const revision = Number(text);
  if (Number.isSafeInteger(revision)) return revision;
  throw new StoreError('unavailable', `etcd is at revision ${text}, beyond what can be counted exactly.`);
}
