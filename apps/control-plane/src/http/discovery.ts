import { RESOURCES } from '@bulwark/views';

const GROUP = 'bulwark.dev';
const GROUP_VERSION = `${GROUP}/v1`;
const STORED_VERBS = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];
const VIRTUAL_VERBS = ['get', 'list', 'watch'];

/** The legacy discovery documents by path, as every kubectl reads them. */
export const DISCOVERY: Readonly<Record<string, unknown>> = {
  '/api': { kind: 'APIVersions', apiVersion: 'v1', versions: ['v1'], serverAddressByClientCIDRs: [] },
  '/api/v1': { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: 'v1', resources: [] },
  '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: [group()] },
  [`/apis/${GROUP}`]: { kind: 'APIGroup', apiVersion: 'v1', ...group() },
  [`/apis/${GROUP_VERSION}`]: {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: GROUP_VERSION,
    resources: RESOURCES.map(({ plural, singular, kind, shortNames, stored }) => ({
      name: plural,
      singularName: singular,
      namespaced: true,
      kind,
      verbs: stored ? STORED_VERBS : VIRTUAL_VERBS,
      shortNames,
      categories: ['bulwark'],
    })),
  },
};

function group(): object {
  const version = { groupVersion: GROUP_VERSION, version: 'v1' };
  return { name: GROUP, versions: [version], preferredVersion: version };
}
