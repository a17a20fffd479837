import type { BenchContext } from '../harness.js';
import { Caller } from './caller.js';
import { Dependency } from './dependency.js';
import { isolation, isolationPolicies } from './isolation.js';
import { outage, outagePolicies } from './outage.js';
import { overload, overloadPolicies } from './overload.js';
import { slowCallPolicies, slowCalls } from './slow-calls.js';

export const name = 'degrade';

/** SCENARIOS S1 and S5, live: a real HTTP dependency in its own process, called through the SDK under real policies. */
export async function run(context: BenchContext): Promise<void> {
  await using dependency = await Dependency.start();
  await using caller = await Caller.start(dependency, [
    ...outagePolicies,
    ...slowCallPolicies,
    ...overloadPolicies,
    ...isolationPolicies,
  ]);
  await outage(context, dependency, caller);
  await slowCalls(context, dependency, caller);
  await overload(context, dependency, caller);
  await isolation(context, dependency, caller);
}
