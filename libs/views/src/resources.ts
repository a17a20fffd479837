/** The kinds people can name, with every word that names them. One table for the command, discovery and the page. */
export type Plural = 'resiliencepolicies' | 'breakers' | 'agents';

export interface Resource {
  readonly plural: Plural;
  readonly singular: string;
  readonly kind: 'ResiliencePolicy' | 'Breaker' | 'Agent';
  readonly shortNames: readonly string[];
  /** Written by people; the others are made by the server. */
  readonly stored: boolean;
}

export const API_GROUP = 'bulwark.dev';
export const API_PATH = `/apis/${API_GROUP}/v1`;

export const RESOURCES: readonly Resource[] = [
  {
    plural: 'resiliencepolicies',
    singular: 'resiliencepolicy',
    kind: 'ResiliencePolicy',
    shortNames: ['rp', 'policy', 'policies'],
    stored: true,
  },
  { plural: 'breakers', singular: 'breaker', kind: 'Breaker', shortNames: ['br'], stored: false },
  { plural: 'agents', singular: 'agent', kind: 'Agent', shortNames: ['ag'], stored: false },
];

/** By plural, singular, short name or kind, in any case, with or without ".bulwark.dev". Undefined = no such kind. */
export function findResource(word: string): Resource | undefined {
  const name = word.toLowerCase().replace(/\.bulwark\.dev$/, '');
  return RESOURCES.find((one) => [one.plural, one.singular, ...one.shortNames].includes(name));
}

export function resourceOfKind(kind: string): Resource | undefined {
  return RESOURCES.find((one) => one.kind === kind);
}

/** "resiliencepolicy.bulwark.dev/NAME": how kubectl names an object in its answers. */
export function objectPath(resource: Resource, name: string): string {
  return `${resource.singular}.${API_GROUP}/${name}`;
}
