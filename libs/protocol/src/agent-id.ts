/** What names an agent at any one time; no part holds a "/". */
export interface AgentName {
  readonly namespace: string;
  readonly service: string;
  readonly instance: string;
}

/** "namespace/service/instance", as `ProbePermit.agent` carries it. */
export function agentId(name: AgentName): string {
  return `${name.namespace}/${name.service}/${name.instance}`;
}

/** The parts of an id, or undefined when it has not exactly three. */
export function parseAgentId(id: string): AgentName | undefined {
  const [namespace, service, instance, ...rest] = id.split('/');
  if (!namespace || !service || !instance || rest.length > 0) return undefined;
  return { namespace, service, instance };
}
