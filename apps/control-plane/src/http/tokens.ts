/** Injection tokens of what the controllers use. */
export const RESOURCE_API = Symbol('ResourceApi');
export const FORCE_API = Symbol('ForceApi');
export const HEALTH = Symbol('Health');
export const METRICS = Symbol('Metrics');
