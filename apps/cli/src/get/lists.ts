import type { Table } from '@bulwark/views';
import {
  notBulwark,
  TABLE,
  type ApiClient,
  type ApiObject,
  type ObjectList,
  type Place,
  type Query,
} from '../client/api-client.js';

const PAGE = '500';

/** All pages as one. */
export async function listObjects(api: ApiClient, place: Place, query: Query): Promise<ObjectList> {
  const items: ApiObject[] = [];
  const metadata = await pages(query, async (paged) => {
    const page = await api.list(place, paged);
    items.push(...page.items);
    return page.metadata;
  });
  return { items, metadata };
}

/** All pages as one. */
export async function listTable(api: ApiClient, place: Place, query: Query): Promise<Table> {
  let whole: Table | undefined;
  await pages(query, async (paged) => {
    const page = await tableOf(api, place, paged);
    whole =
      whole === undefined ? page : { ...whole, metadata: page.metadata, rows: [...whole.rows, ...page.rows] };
    return page.metadata;
  });
  return whole ?? EMPTY_TABLE;
}

/** A list's, or with a name one object's. */
export async function tableOf(api: ApiClient, place: Place, query: Query): Promise<Table> {
  const answer = (await api.call(place, { method: 'GET', accept: TABLE, query })) as Table | undefined;
  if (answer?.kind === 'Table') return answer;
  throw notBulwark(api.connection.url);
}

export const EMPTY_TABLE: Table = {
  kind: 'Table',
  apiVersion: 'meta.k8s.io/v1',
  metadata: {},
  columnDefinitions: [],
  rows: [],
};

type ListMetadata = ObjectList['metadata'];

async function pages(query: Query, read: (query: Query) => Promise<ListMetadata>): Promise<ListMetadata> {
  let next: string | undefined;
  for (;;) {
    const metadata = await read({ ...query, limit: PAGE, ...(next === undefined ? {} : { continue: next }) });
    if (metadata.continue === undefined || metadata.continue === '') return metadata;
    next = metadata.continue;
  }
}
