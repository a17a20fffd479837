export type * from './contract.js';
export { createDecider } from './decider.js';
