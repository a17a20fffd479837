/** What a caller process is told at its start, as JSON in its first argument. */
export interface CallerSettings {
  /** "host:port" of the control plane's gRPC side. */
  readonly controlPlane: string;
  readonly namespace: string;
  readonly service: string;
  /** One agent for each, all in this process. */
  readonly instances: readonly string[];
  /** Known services: name and base URL. Each agent calls each chosen one `callsPerSecond` times a second. */
  readonly targets: readonly { readonly service: string; readonly url: string }[];
  readonly callsPerSecond: number;
  /** Directory for snapshots on disk; each instance has its own folder in it. */
  readonly stateDir: string;
}

/** Offered and admitted calls of one agent under one verdict. */
export interface EpochCount {
  readonly epoch: number;
  readonly state: string;
  /** Admitted share that the verdict names, 0..1. */
  readonly share: number;
  readonly offered: number;
  readonly admitted: number;
}

export interface AgentStats {
  readonly agent: string;
  readonly service: string;
  readonly calls: number;
  readonly fresh: number;
  readonly degraded: number;
  readonly rejected: number;
  readonly failed: number;
  readonly epochs: readonly EpochCount[];
}

export type CallerMessage =
  /** All its agents have a policy for every target. */
  | { readonly type: 'ready' }
  /** An agent's breaker stopped admitting ordinary calls, or admits them again. */
  | {
      readonly type: 'state';
      readonly agent: string;
      readonly service: string;
      readonly state: string;
      readonly atMs: number;
    }
  | { readonly type: 'stats'; readonly agents: readonly AgentStats[] };

export type CallerCommand =
  | { readonly type: 'stats' }
  /** From now on calls go to these services only; at the start they go to all. */
  | { readonly type: 'choose'; readonly services: readonly string[] }
  | { readonly type: 'stop' };
