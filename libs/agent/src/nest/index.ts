export { BulwarkModule, type BulwarkAsyncOptions, type BulwarkModuleOptions } from './bulwark-module.js';
export { currentAttempt, Guarded, type GuardedOptions } from './guarded-method.js';
