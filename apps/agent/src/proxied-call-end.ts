import type { CallResult } from '@bulwark/agent';

/** How one proxied call ended, for metrics. */
export interface ProxiedCallEnd {
  readonly service: string;
  readonly outcome: 'ok' | 'ok_degraded' | 'failed' | 'rejected' | 'cancelled';
  readonly seconds: number;
}

const OUTCOMES = {
  fresh: 'ok',
  degraded: 'ok_degraded',
  rejected: 'rejected',
  failed: 'failed',
} as const;

export function outcomeOf(result: CallResult<unknown>): ProxiedCallEnd['outcome'] {
  return result.kind === 'failed' && result.cancelled ? 'cancelled' : OUTCOMES[result.kind];
}
