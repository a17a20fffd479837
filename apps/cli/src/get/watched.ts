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
  let news: RowNews | undefined;
  const learn = (table: Table) => {
    if (table.columnDefinitions.length === 0) return;
    const look = { ...options, prefixed: false, paint: context.paint };
    writer ??= new RowWriter(resource, table.columnDefinitions, look);
    news ??= new RowNews(table.columnDefinitions, options.output.format === 'wide');
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
    text: (rows, event) => {
      const shown = options.everyUpdate ? rows : rows.filter((row) => news?.isNews(row, event) ?? true);
      return Promise.resolve(writer?.lines(shown, event) ?? '');
    },
  };
}

const PASSING: ReadonlySet<string> = new Set(['live', 'remark']);

/**
 * Rates, ages and notes of a breaker change several times a second. A row in which nothing else has changed since it was
 * shown tells nobody anything; `-o json` and `--every-update` have them all.
 */
class RowNews {
  private readonly steady: readonly number[];
  private readonly last = new Map<string, string>();

  constructor(definitions: Table['columnDefinitions'], wide: boolean) {
    this.steady = definitions.flatMap(({ format, type, priority }, index) =>
      PASSING.has(format) || type === 'date' || (priority > 0 && !wide) ? [] : [index],
    );
  }

  isNews(row: Row, event: WatchEvent['type']): boolean {
    const { namespace = '', name = '' } = metadataOf(row.object);
    const key = `${namespace}/${name}`;
    const text = event === 'DELETED' ? '' : JSON.stringify(this.steady.map((index) => row.cells[index]));
    const isNews = event !== 'MODIFIED' || this.last.get(key) !== text;
    this.last.set(key, text);
    return isNews;
  }
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
