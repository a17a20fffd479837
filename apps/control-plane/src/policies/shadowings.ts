import { shadowed, type CompiledPolicy } from '@bulwark/policy';
import type { PolicyCatalog } from './policy-catalog.js';

const NONE: ReadonlyMap<string, readonly string[]> = new Map();
/** Comparing thousands of policies of one service takes its time: at most this part of it is spent so. */
const REST = 20;

/** Which policies can never win, by namespace; worked out anew when the catalog has changed, but not without end. */
export class Shadowings {
  private byNamespace = new Map<string, ReadonlyMap<string, readonly string[]>>();
  private revision = -1;
  private restUntilMs = -Infinity;

  constructor(private readonly catalog: PolicyCatalog) {}

  /** Counts up with each change of the answer. */
  version = 0;

  /** Names of the winners by the name of the policy that loses to them. */
  of(namespace: string): ReadonlyMap<string, readonly string[]> {
    return this.byNamespace.get(namespace) ?? NONE;
  }

  refresh(nowMs: number): void {
    if (this.revision === this.catalog.revision || nowMs < this.restUntilMs) return;
    this.revision = this.catalog.revision;
    this.byNamespace = new Map();
    for (const namespace of this.catalog.names()) this.byNamespace.set(namespace, this.find(namespace));
    this.version += 1;
    this.restUntilMs = nowMs + (performance.now() - nowMs) * REST;
  }

  private find(namespace: string): ReadonlyMap<string, readonly string[]> {
    const services = new Map<string, CompiledPolicy[]>();
    for (const { compiled } of this.catalog.of(namespace).values()) {
      if (compiled === undefined) continue;
      const { service } = compiled.target;
      const known = services.get(service);
      if (known === undefined) services.set(service, [compiled]);
      else known.push(compiled);
    }
    const found = [...services.values()].flatMap((policies) => shadowed(policies));
    return new Map(found.map(({ policy, by }) => [policy.name, by.map(({ name }) => name)]));
  }
}
