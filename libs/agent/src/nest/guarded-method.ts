import { Inject } from '@nestjs/common';
import type { Attempt } from '@bulwark/resilience';
import { AsyncLocalStorage } from 'node:async_hooks';
import { Bulwark } from '../bulwark.js';
import type { CallOptions } from '../call-options.js';

/** What is said of one call; a function makes it of the method's arguments. */
export type GuardedOptions<A extends unknown[], T> = CallOptions<T> | ((...given: A) => CallOptions<T>);

const AGENT = 'bulwarkOfGuardedMethods';
const attempts = new AsyncLocalStorage<Attempt>();

/**
 * Within a `@Guarded` method: the attempt under way, with its signal and what is left of its time. Undefined elsewhere.
 */
export function currentAttempt(): Attempt | undefined {
  return attempts.getStore();
}

/**
 * Runs a provider's method as calls of a service under its policies: `@Guarded('fraud-api', { operation: 'check' })`. It
 * is run once an attempt, so a policy that retries it needs `method` or `idempotencyKey` among the options.
 */
export function Guarded<A extends unknown[], T>(service: string, options: GuardedOptions<A, T> = {}) {
  return (
    target: object,
    _name: string | symbol,
    descriptor: TypedPropertyDescriptor<(...given: A) => Promise<T>>,
  ): void => {
    const method = descriptor.value;
    if (method === undefined) throw new TypeError('@Guarded is for methods');
    Inject(Bulwark)(target, AGENT);
    descriptor.value = function guarded(this: object, ...given: A): Promise<T> {
      const bulwark = (this as Record<string, unknown>)[AGENT];
      if (!(bulwark instanceof Bulwark)) {
        throw new TypeError('@Guarded needs BulwarkModule, and an instance that Nest has made');
      }
      const said = typeof options === 'function' ? options(...given) : options;
      return bulwark.call(service, said, (attempt) => attempts.run(attempt, () => method.apply(this, given)));
    };
  };
}
