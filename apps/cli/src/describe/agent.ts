import { NO_DATA, shortSpanText, type AgentObject } from '@bulwark/views';
import type { Entry } from './sections.js';
import { mapText, timeText } from './times.js';

export function describeAgent({ metadata, spec, status }: AgentObject, now: number): readonly Entry[] {
  return [
    ['Name', metadata.name],
    ['Namespace', metadata.namespace],
    ['Labels', mapText(metadata.labels)],
    ['Service', spec.service],
    ['Instance', spec.instance],
    ['Incarnation', spec.incarnation],
    ['Version', status.version || NO_DATA],
    ['Zone', status.zone ?? NO_DATA],
    ['Sync', status.phase],
    ['Replica', status.replica],
    ['Connected', timeText(status.connectedAt, now)],
    ['Last message', timeText(status.lastSeen, now)],
    ['Sent', status.sent ?? NO_DATA],
    ['Acknowledged', status.acked ?? NO_DATA],
    ['Lag', status.phase === 'Lost' ? NO_DATA : status.lagMs === 0 ? 'none' : shortSpanText(status.lagMs)],
    [
      'Policies',
      {
        head: ['NAME', 'GENERATION', 'STATE', 'REASON'],
        rows: status.policies.map((one) => [
          one.name,
          String(one.generation),
          one.accepted ? 'running' : 'refused',
          one.reason ?? '',
        ]),
      },
    ],
  ];
}
