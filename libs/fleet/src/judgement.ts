/** Words of the wire, see fleet.proto. */
export type TripReason = 'consecutive-failures' | 'failure-rate' | 'slow-rate';

/**
 * What the rules say of the counts known now. `trips`: a rule and the quorum hold. `localised`: a rule holds, but too few
 * agents see it. `calm`: no rule holds; the note says how far away it is, when there is something to say.
 */
export type Judgement =
  | { readonly kind: 'trips'; readonly reason: TripReason; readonly message: string }
  | { readonly kind: 'localised'; readonly reason: TripReason; readonly message: string }
  | { readonly kind: 'calm'; readonly note: string | undefined };

export const CALM: Judgement = { kind: 'calm', note: undefined };

export interface Quorum {
  readonly instances: number;
  /** 0..1. */
  readonly share: number;
}

/**
 * How many agents must see the fault. `present`: agents with an outcome lately, so that the only agent of a quiet fleet
 * is not taken for the only one there is; the share is of those with an outcome in the very window judged.
 */
export function quorumOf(quorum: Quorum, active: number, present: number): number {
  const instances = Math.min(quorum.instances, Math.max(present, active));
  return Math.max(1, instances, Math.ceil(quorum.share * active - 1e-9));
}

export function percent(part: number, whole: number): string {
  return `${Math.round((1000 * part) / Math.max(whole, 1e-9)) / 10} %`;
}

export function seconds(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 10) / 100} s`;
}
