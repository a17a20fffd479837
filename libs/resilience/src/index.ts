export type * from './call.js';
export type * from './host.js';
export type * from './outcome.js';
export type * from './settings.js';
export { compareVersions, type FleetVerdict, type VerdictVersion } from './verdict.js';
