import { resourceId, type Resource, type SnapshotVersion } from '@bulwark/protocol';
import type { AgentObject } from '@bulwark/views';
import type { AgentSession } from '../distribution/agent-session.js';
import { API_VERSION } from '../objects/api-object.js';

const ZONE = 'bulwark.dev/zone';
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

export interface AgentView {
  readonly session: AgentSession;
  readonly replica: string;
  readonly desired: ReadonlyMap<string, Resource>;
  readonly nowMs: number;
  readonly lost: boolean;
}

/** One agent as the API shows it. */
export function agentObject(view: AgentView): AgentObject {
  const { session, replica, nowMs } = view;
  const { namespace, service, instance, incarnation, labels, version } = session.hello;
  const zone = labels[ZONE];
  const { sent, acked } = session.delivery;
  return {
    apiVersion: API_VERSION,
    kind: 'Agent',
    metadata: {
      name: `${service}.${instance}`,
      namespace,
      uid: incarnation,
      creationTimestamp: seconds(session.connectedAt),
      labels: Object.fromEntries(Object.entries(labels).filter(([, value]) => LABEL_VALUE.test(value))),
    },
    spec: { service, instance, incarnation },
    status: {
      phase: phase(view),
      replica,
      version,
      ...(zone === undefined ? {} : { zone }),
      connectedAt: session.connectedAt.toISOString(),
      lastSeen: session.lastSeenAt.toISOString(),
      ...(sent === undefined ? {} : { sent: versionText(sent) }),
      ...(acked === undefined ? {} : { acked: versionText(acked) }),
      lagMs: view.lost ? 0 : Math.round(session.delivery.lagMs(nowMs)),
      policies: policiesOf(view),
    },
  };
}

function phase({ session, desired, lost }: AgentView): AgentObject['status']['phase'] {
  if (lost) return 'Lost';
  if (session.delivery.refused.size > 0) return 'Refused';
  return isInStep(session, desired) ? 'Synced' : 'Pending';
}

function isInStep({ delivery }: AgentSession, desired: ReadonlyMap<string, Resource>): boolean {
  if (delivery.acked === undefined || delivery.waiting) return false;
  return [...desired].every(([id, { uid, generation }]) => {
    const held = delivery.held.get(id);
    return held?.uid === uid && held.generation === generation;
  });
}

type PolicyState = AgentObject['status']['policies'][number];

function policiesOf({ session, desired }: AgentView): PolicyState[] {
  const { held, refused } = session.delivery;
  return [...desired.values()].flatMap(({ name, generation }): PolicyState[] => {
    if (name === undefined) return [];
    const no = refused.get(resourceId(name));
    if (no !== undefined)
      return [{ name: name.name, generation: no.generation, accepted: false, reason: no.reason }];
    const yes = held.get(resourceId(name));
    return yes === undefined
      ? []
      : [{ name: name.name, generation: Math.min(yes.generation, generation), accepted: true }];
  });
}

function versionText({ era, revision }: SnapshotVersion): string {
  return `${era}.${revision}`;
}

function seconds(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, 'Z');
}
