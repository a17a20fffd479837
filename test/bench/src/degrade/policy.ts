/** One document of the bootstrap file: a policy for the service of the same name. `spec`: lines of YAML below `target`. */
export function policy(service: string, ...spec: readonly string[]): string {
  return [
    'apiVersion: bulwark.dev/v1',
    'kind: ResiliencePolicy',
    `metadata: { name: ${service}, namespace: shop }`,
    'spec:',
    `  target: { service: ${service} }`,
    ...spec.map((line) => `  ${line}`),
    '',
  ].join('\n');
}

/** SCENARIOS S1: opens at three failures in a row, one probe, no steps of recovery. */
export const breakerLine = (cooldown: string) =>
  `circuitBreaker: { scope: Instance, trip: { consecutiveFailures: 3 }, cooldown: { initial: ${cooldown}, max: ${cooldown}, factor: 1 }, recovery: { steps: [] } }`;

export const staticLine = `  - static: { status: 200, body: '{"items": []}' }`;
