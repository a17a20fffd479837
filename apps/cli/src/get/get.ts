import { objectPath, type Resource, type Table } from '@bulwark/views';
import type { ApiObject, Place, Query } from '../client/api-client.js';
import { ApiError } from '../client/status.js';
import { EXIT, UsageError } from '../command-error.js';
import type { Context } from '../context.js';
import { documentText } from '../output/documents.js';
import type { Target } from '../targets.js';
import { EMPTY_TABLE, listObjects, listTable, tableOf } from './lists.js';
import { renderTemplate } from './jsonpath.js';
import { isTable, type GetOptions, type Output } from './options.js';
import { RowWriter } from './rows.js';
import { sortRows } from './sort.js';

/** `bulwark get` without `-w`. Answers the exit code: 1 when a name was not found, the others being shown. */
export async function get(
  targets: readonly Target[],
  options: GetOptions,
  context: Context,
): Promise<number> {
  refuseContradictions(targets, options);
  const run = new GetRun(options, context);
  const shown = isTable(options.output) ? run.tables(targets) : run.objects(targets);
  return (await shown) ? EXIT.ok : EXIT.failed;
}

export function refuseContradictions(targets: readonly Target[], options: GetOptions): void {
  if (targets.every((target) => target.names.length === 0)) return;
  if (options.allNamespaces)
    throw new UsageError('names are of one namespace: -A does not go with them', 'Try: -n NAMESPACE');
  if (options.selector !== undefined || options.fieldSelector !== undefined) {
    throw new UsageError('names and selectors do not go together');
  }
}

export function selectorsOf(options: GetOptions): Query {
  return { labelSelector: options.selector, fieldSelector: options.fieldSelector };
}

export function placeOf(
  resource: Resource,
  options: Pick<GetOptions, 'allNamespaces'>,
  context: Context,
): Place {
  return { plural: resource.plural, namespace: options.allNamespaces ? undefined : context.namespace };
}

class GetRun {
  private missing = false;

  constructor(
    private readonly options: GetOptions,
    private readonly context: Context,
  ) {}

  /** False = something was not found. */
  async tables(targets: readonly Target[]): Promise<boolean> {
    const { io, paint } = this.context;
    const kinds = new Set(targets.map((target) => target.resource));
    const texts: string[] = [];
    for (const resource of kinds) {
      const table = await this.table(targets.filter((target) => target.resource === resource));
      if (table.rows.length === 0) continue;
      const look = { ...this.options, watch: false, watchEvents: false, prefixed: kinds.size > 1, paint };
      const rows = sortRows(table.rows, this.options.sortBy);
      texts.push(new RowWriter(resource, table.columnDefinitions, look).lines(rows));
    }
    io.out(texts.join('\n'));
    this.tellNone(texts.length);
    return !this.missing;
  }

  /** False = something was not found. */
  async objects(targets: readonly Target[]): Promise<boolean> {
    const { io } = this.context;
    const found: { readonly resource: Resource; readonly object: ApiObject }[] = [];
    for (const target of targets) {
      const objects = (await this.found(target)).map((object) => ({ resource: target.resource, object }));
      found.push(...objects);
    }
    const sorted = sortRows(found, this.options.sortBy);
    if (this.options.output.format === 'name') {
      io.out(
        sorted.map(({ resource, object }) => `${objectPath(resource, object.metadata.name)}\n`).join(''),
      );
      this.tellNone(sorted.length);
      return !this.missing;
    }
    const objects = sorted.map(({ resource, object }) => withKind(object, resource));
    if (this.missing && objects.length === 0) return false;
    const single = targets.length === 1 && targets[0]?.names.length === 1;
    const value = single ? objects[0] : listOf(objects);
    io.out(await outputText(value, this.options.output));
    return !this.missing;
  }

  private async table(targets: readonly Target[]): Promise<Table> {
    const { api } = this.context;
    const query = this.options.sortBy === undefined ? {} : { includeObject: 'Object' };
    const tables: Table[] = [];
    for (const target of targets) {
      const place = placeOf(target.resource, this.options, this.context);
      if (target.names.length > 0)
        tables.push(...(await this.each(target, (named) => tableOf(api, named, query))));
      else tables.push(await listTable(api, place, { ...selectorsOf(this.options), ...query }));
    }
    return { ...EMPTY_TABLE, ...tables[0], rows: tables.flatMap((table) => table.rows) };
  }

  private async found(target: Target): Promise<readonly ApiObject[]> {
    const { api } = this.context;
    if (target.names.length > 0) return this.each(target, (named) => api.get(named));
    const place = placeOf(target.resource, this.options, this.context);
    return (await listObjects(api, place, selectorsOf(this.options))).items;
  }

  /** Names that are not found are told at once and the others go on, as kubectl does. */
  private async each<T>(target: Target, one: (place: Place) => Promise<T>): Promise<T[]> {
    const place = placeOf(target.resource, this.options, this.context);
    const found: T[] = [];
    for (const name of target.names) {
      try {
        found.push(await one({ ...place, name }));
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== 404) throw error;
        this.missing = true;
        this.context.io.err(`${error.message}\n`);
      }
    }
    return found;
  }

  private tellNone(count: number): void {
    if (count === 0 && !this.missing) this.context.io.err(noneFound(this.options, this.context));
  }
}

/** Objects in lists often come without their kind. */
export function withKind(object: ApiObject, resource: Resource): ApiObject {
  const { apiVersion = 'bulwark.dev/v1', kind = resource.kind, ...rest } = object;
  return { apiVersion, kind, ...rest };
}

async function outputText(value: unknown, output: Output): Promise<string> {
  if (output.format === 'jsonpath') return renderTemplate(output.template, value);
  return documentText(value, output.format === 'json' ? 'json' : 'yaml');
}

function listOf(items: readonly ApiObject[]): unknown {
  return { apiVersion: 'v1', kind: 'List', metadata: { resourceVersion: '' }, items };
}

export function noneFound(
  options: Pick<GetOptions, 'allNamespaces'>,
  context: Pick<Context, 'namespace'>,
): string {
  return options.allNamespaces
    ? 'No resources found\n'
    : `No resources found in ${context.namespace} namespace.\n`;
}
