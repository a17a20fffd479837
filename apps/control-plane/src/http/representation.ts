import { tableFor, type ObjectOf, type Plural, type Table } from '@bulwark/views';
import { ApiError } from '../errors/api-error.js';
import { API_VERSION, type ApiObject } from '../objects/api-object.js';

/** How a client wants to see objects. */
export type Representation =
  | { readonly as: 'object' }
  | { readonly as: 'table'; readonly apiVersion: 'meta.k8s.io/v1' | 'meta.k8s.io/v1beta1' };

/** The first type of the Accept header that this server can write; 406 when there is none. */
export function negotiate(accept: string | undefined): Representation {
  for (const range of (accept || '*/*').toLowerCase().split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
    if (type !== 'application/json' && type !== 'application/*' && type !== '*/*') continue;
    const values = new Map(parameters.map((one) => one.split('=') as [string, string]));
    const as = values.get('as');
    if (as === undefined) return { as: 'object' };
    if (as !== 'table' || values.get('g') !== 'meta.k8s.io') continue;
    const version = values.get('v');
    if (version === 'v1' || version === 'v1beta1')
      return { as: 'table', apiVersion: `meta.k8s.io/${version}` };
  }
  throw new ApiError('NotAcceptable', 'only application/json, also as a meta.k8s.io Table, can be served');
}

export interface TableRequest {
  readonly plural: Plural;
  readonly representation: Representation & { as: 'table' };
  readonly includeObject: 'Metadata' | 'Object' | 'None';
  readonly resourceVersion?: string;
  readonly columns?: boolean;
}

export function asTable(objects: readonly ApiObject[], request: TableRequest): unknown {
  const { plural, representation, includeObject, resourceVersion, columns } = request;
  // The collections of a kind hold objects of that kind only.
  const table: Table = tableFor(plural, objects as unknown as readonly ObjectOf[Plural][], {
    now: Date.now(),
    includeObject,
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(columns === undefined ? {} : { columns }),
  });
  return { ...table, apiVersion: representation.apiVersion };
}

export function asList(objects: readonly ApiObject[], kind: string, revision: number): unknown {
  return {
    kind: `${kind}List`,
    apiVersion: API_VERSION,
    metadata: { resourceVersion: String(revision) },
    items: objects,
  };
}
