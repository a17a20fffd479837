import { ageText, shortSpanText } from './age.js';
import { plain, type Column } from './column.js';
import { NO_DATA } from './numbers.js';
import type { AgentObject } from './objects.js';

function accepted({ status }: AgentObject): string {
  return `${status.policies.filter((one) => one.accepted).length}/${status.policies.length}`;
}

/** Nothing is outstanding for an agent that is gone, and nothing is known either. */
function lag({ status }: AgentObject): string {
  return status.phase === 'Lost' ? NO_DATA : shortSpanText(status.lagMs);
}

export const agentColumns: readonly Column<AgentObject>[] = [
  {
    name: 'NAME',
    description: 'Service and instance.',
    priority: 0,
    shape: 'name',
    cell: (it) => it.metadata.name,
  },
  { name: 'SERVICE', description: 'Service it is part of.', priority: 0, cell: (it) => it.spec.service },
  { name: 'ZONE', description: 'Its zone.', priority: 0, cell: (it) => plain(it.status.zone ?? NO_DATA) },
  {
    name: 'VERSION',
    description: 'Its software.',
    priority: 0,
    cell: (it) => plain(it.status.version || NO_DATA),
  },
  {
    name: 'SYNC',
    description: 'Synced, Pending (an update is under way), Refused (some of it), Lost (not connected).',
    priority: 0,
    room: 'Refused'.length,
    cell: (it) => it.status.phase,
  },
  {
    name: 'ACKED',
    description: 'Newest version it acknowledged.',
    priority: 0,
    shape: 'number',
    cell: (it) => it.status.acked ?? NO_DATA,
  },
  {
    name: 'LAG',
    description: 'Since the oldest update not acknowledged was sent.',
    priority: 0,
    shape: 'live',
    cell: lag,
  },
  {
    name: 'AGE',
    description: 'Since it connected.',
    priority: 0,
    shape: 'age',
    cell: (it, now) => ageText(it.status.connectedAt, now),
  },
  { name: 'INSTANCE', description: 'Its instance id.', priority: 1, cell: (it) => plain(it.spec.instance) },
  {
    name: 'REPLICA',
    description: 'Replica it is connected to.',
    priority: 1,
    cell: (it) => it.status.replica,
  },
  {
    name: 'SENT',
    description: 'Newest version sent to it.',
    priority: 1,
    shape: 'number',
    cell: (it) => it.status.sent ?? NO_DATA,
  },
  {
    name: 'POLICIES',
    description: 'Policies accepted, of those it got.',
    priority: 1,
    shape: 'number',
    cell: accepted,
  },
  {
    name: 'SEEN',
    description: 'Since its last message.',
    priority: 1,
    shape: 'age',
    cell: (it, now) => ageText(it.status.lastSeen, now),
  },
];
