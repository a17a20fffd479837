import type { Suite } from './harness.js';

export interface SuiteEntry {
  /** One line: what it measures. */
  readonly about: string;
  /** Its module is loaded when it is run, so that one suite's needs never touch another's figures. */
  readonly load: () => Promise<Suite>;
}

/** Every suite by name. */
export const suites: Readonly<Record<string, SuiteEntry>> = {
  engine: {
    about: 'what a guarded call costs beside a bare one, a breaker written by hand, and two libraries',
    load: () => import('./engine/suite.js'),
  },
  degrade: {
    about: 'errors, degraded answers and latency of a caller whose dependency is down, slow or overloaded',
    load: () => import('./degrade/suite.js'),
  },
  sidecar: {
    about: 'what an answer through the sidecar costs beside a bare proxy of node:http, nginx and haproxy',
    load: () => import('./sidecar/suite.js'),
  },
};
