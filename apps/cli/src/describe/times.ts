import { ageText, NO_DATA } from '@bulwark/views';

/** "2026-03-01T12:00:00Z (5m ago)". */
export function timeText(time: string | undefined, now: number): string {
  return time === undefined ? NO_DATA : `${time} (${ageText(time, now)} ago)`;
}

export function mapText(map: Readonly<Record<string, string>> | undefined): string {
  const lines = Object.entries(map ?? {})
    .filter(([key]) => key !== 'kubectl.kubernetes.io/last-applied-configuration')
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${value}`);
  return lines.join('\n') || '<none>';
}
