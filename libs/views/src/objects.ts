/** Objects as the API shows them. Stored kinds have their schema in @bulwark/policy; these two are made by the server. */
export interface ObjectMeta {
  readonly name: string;
  readonly namespace: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface BreakerObject {
  readonly apiVersion: 'bulwark.dev/v1';
  readonly kind: 'Breaker';
  readonly metadata: ObjectMeta;
  readonly spec: {
    readonly policy: string;
    readonly key: string;
    readonly scope: string;
    readonly target: string;
    /** The policy's. Shadow = decides and reports, and every call passes. Absent = Enforce, or not known. */
    readonly mode?: 'Shadow' | 'Enforce';
    /** What trips it, for people: "10 consecutive", "50%/10s". */
    readonly threshold: string;
  };
  readonly status: {
    readonly state: 'Closed' | 'Open' | 'HalfOpen' | 'Recovering';
    /** Set by a person, beside the computed state. */
    readonly forced?: {
      readonly state: 'Open' | 'Closed';
      readonly by: string;
      readonly reason: string;
      /** RFC 3339: when it ends by itself. */
      readonly until?: string;
    };
    readonly era: number;
    readonly token: number;
    readonly epoch: number;
    /** RFC 3339; absent = never changed. */
    readonly since?: string;
    readonly reason?: string;
    readonly message?: string;
    /** Percent text ("25%") while recovering. */
    readonly share?: string;
    readonly probe?: { readonly agent: string; readonly calls: number };
    /** Own breakers of the agents that report this key. */
    readonly agents: {
      readonly total: number;
      readonly open: number;
      readonly halfOpen: number;
      readonly closed: number;
      /** Have the present verdict in force. */
      readonly synced: number;
    };
    /** Over the last 10 s; absent ratios = no calls. */
    readonly calls: {
      readonly perSecond: number;
      readonly failureRatio?: number;
      readonly rejectedPerSecond: number;
    };
    /** Agents (at most 20) whose own breakers are not closed while the fleet's is. */
    readonly localised?: readonly string[];
    readonly note?: string;
    /** Newest last. */
    readonly transitions: readonly {
      readonly time: string;
      readonly from: string;
      readonly to: string;
      readonly reason: string;
      readonly message: string;
      readonly epoch: number;
    }[];
  };
}

export interface AgentObject {
  readonly apiVersion: 'bulwark.dev/v1';
  readonly kind: 'Agent';
  /** `name` is "<service>.<instance>". */
  readonly metadata: ObjectMeta;
  readonly spec: { readonly service: string; readonly instance: string; readonly incarnation: string };
  readonly status: {
    readonly phase: 'Synced' | 'Pending' | 'Refused' | 'Lost';
    readonly replica: string;
    readonly version: string;
    readonly zone?: string;
    readonly connectedAt: string;
    /** RFC 3339 of the last message. */
    readonly lastSeen: string;
    /** "era.revision" sent and acknowledged. */
    readonly sent?: string;
    readonly acked?: string;
    /** Milliseconds since the oldest update not acknowledged was sent; 0 = in step. */
    readonly lagMs: number;
    readonly policies: readonly {
      readonly name: string;
      readonly generation: number;
      readonly accepted: boolean;
      readonly reason?: string;
    }[];
  };
}
