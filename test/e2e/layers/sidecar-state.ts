import { getJson, type Sidecar } from '../programs.js';

/** What these tests read of a sidecar's `/state`. */
export interface SidecarState {
  readonly policies: readonly {
    readonly service: string;
    readonly breakers: readonly { readonly state: string }[];
    /** Absent until the first call. */
    readonly totals?: { readonly attempts: number };
  }[];
  readonly sidecar: { readonly outbound: { readonly accepted: number; readonly unfinished: number } };
}

export function sidecarState(sidecar: Sidecar): Promise<SidecarState> {
  return getJson<SidecarState>(`http://${sidecar.admin}/state`);
}
