import { objectPath, type Resource, type Table } from '@bulwark/views';
import { TABLE, type ApiObject, type Place, type Query } from '../client/api-client.js';
import type { WatchEvent } from '../client/watch-stream.js';
import type { Context } from '../context.js';
import { documentText } from '../output/documents.js';
import { withKind } from './get.js';
import { renderTemplate } from './jsonpath.js';
import { listObjects, listTable } from './lists.js';
import type { GetOptions } from './options.js';
import { metadataOf, RowWriter, type RowMetadata } from './rows.js';

/** How the objects of a watch come and are shown: as rows of a table, or as documents. */
export interface Watched<Item> {
  readonly accept: string;
  readonly list: (
    place: Place,
    query: Query,
  ) => Promise<{ readonly items: readonly Item[]; readonly version: string }>;
  /** What an event carries; a bookmark carries nothing. */
  readonly itemsOf: (object: unknown) => readonly Item[];
  readonly metadata: (item: Item) => RowMetadata;
  readonly text: (items: readonly Item[], event: WatchEvent['type']) => Promise<string>;
}

type Row = Table['rows'][number];

export function watchedRows(resource: Resource, options: GetOptions, context: Context): Watched<Row> {
  let writer: RowWriter | undefined;
  const learn = (table: Table) => {
    if (table.columnDefinitions.length === 0) return;
    const look = { ...options, prefixed: false, paint: context.paint };
    writer ??= new RowWriter(resource, table.columnDefinitions, look);
  };
  return {
    accept: TABLE,
    list: async (place, query) => {
      const table = await listTable(context.api, place, query);
      learn(table);
      return { items: table.rows, version: table.metadata.resourceVersion ?? '' };
    },
    itemsOf: (object) => {
      const table = object as Partial<Table>;
      if (table.kind !== 'Table' || table.rows === undefined) return [];
      learn({ columnDefinitions: [], ...table } as Table);
      return table.rows;
    },
    metadata: (row) => metadataOf(row.object),
    text: (rows, event) => Promise.resolve(writer?.lines(rows, event) ?? ''),
  };
}

export function watchedObjects(
  resource: Resource,
  options: GetOptions,
  context: Context,
): Watched<ApiObject> {
  return {
    accept: 'application/json',
    list: async (place, query) => {
      const { items, metadata } = await listObjects(context.api, place, query);
      return { items, version: metadata.resourceVersion ?? '' };
    },
    itemsOf: (object) => [object as ApiObject],
    metadata: metadataOf,
    text: async (objects, event) => {
      const texts = objects.map((object) => documentOf(object, { event, resource, options }));
      return (await Promise.all(texts)).join('');
    },
  };
}

/** JSON stands on one line a document, so that programs can read it as it comes. */
async function documentOf(
  object: ApiObject,
  how: { readonly event: string; readonly resource: Resource; readonly options: GetOptions },
): Promise<string> {
  const { event, resource, options } = how;
  const whole = withKind(object, resource);
  const { output, watchEvents } = options;
  if (output.format === 'name')
    return `${watchEvents ? `${event} ` : ''}${objectPath(resource, object.metadata.name)}\n`;
  const shown = watchEvents ? { type: event, object: whole } : whole;
  if (output.format === 'json') return `${JSON.stringify(shown)}\n`;
  if (output.format === 'jsonpath') return renderTemplate(output.template, shown).replace(/\n?$/, '\n');
  return `---\n${await documentText(shown, 'yaml')}`;
}
