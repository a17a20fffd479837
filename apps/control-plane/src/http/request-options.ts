import { badRequest, invalid } from '../errors/api-error.js';
import type { FieldValidation } from '../objects/field-validation.js';
import { parseSelection, type Selection } from '../objects/selection.js';

/** Query parameters as the HTTP layer gives them; a repeated one is a list. */
export type Query = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface ListOptions {
  readonly selection: Selection;
  readonly includeObject: 'Metadata' | 'Object' | 'None';
  readonly watch: WatchOptions | undefined;
  /** A list at least this new; 0 = whatever is at hand. */
  readonly revision: number;
}

export interface WatchOptions {
  /** Events after this one; undefined or 0 = first an ADDED for each object there is. */
  readonly from: number | undefined;
  readonly bookmarks: boolean;
  readonly timeoutMs: number;
  /** Ends the first ADDED events with a marked bookmark. */
  readonly markInitialEnd: boolean;
}

const MAX_WATCH_SECONDS = 3_600;
const DEFAULT_WATCH_SECONDS = 1_800;

export function listOptions(query: Query, namespace: string | undefined): ListOptions {
  if (one(query, 'continue') !== '') throw badRequest('continue: this server never hands out such a token');
  integer(query, 'limit');
  return {
    selection: parseSelection({
      namespace,
      labelSelector: one(query, 'labelSelector'),
      fieldSelector: one(query, 'fieldSelector'),
    }),
    includeObject: includeObject(query),
    watch: watchOptions(query),
    revision: integer(query, 'resourceVersion') ?? 0,
  };
}

function watchOptions(query: Query): WatchOptions | undefined {
  const watch = flag(query, 'watch');
  const initialEvents = one(query, 'sendInitialEvents');
  if (initialEvents !== '' && !watch) {
    throw forbidden('sendInitialEvents', 'is forbidden for a list: it needs watch=true');
  }
  if (!watch) return undefined;
  const initial = flag(query, 'sendInitialEvents');
  const match = one(query, 'resourceVersionMatch');
  if (initialEvents !== '' && match !== 'NotOlderThan') {
    throw forbidden('resourceVersionMatch', 'must be NotOlderThan where sendInitialEvents is given');
  }
  if (initialEvents === '' && match !== '') {
    throw forbidden('resourceVersionMatch', 'is forbidden for a watch without sendInitialEvents');
  }
  const bookmarks = flag(query, 'allowWatchBookmarks');
  const from = integer(query, 'resourceVersion');
  // 0 is what clients send that have no wish.
  const seconds = Math.min(integer(query, 'timeoutSeconds') || randomWatchSeconds(), MAX_WATCH_SECONDS);
  return {
    from: initial ? undefined : from,
    bookmarks,
    timeoutMs: seconds * 1_000,
    markInitialEnd: initial && bookmarks,
  };
}

/** Spread, so that watches which began together do not all end together. */
function randomWatchSeconds(): number {
  return DEFAULT_WATCH_SECONDS * (1 + Math.random());
}

export interface WriteQuery {
  readonly dryRun: boolean;
  readonly fieldValidation: FieldValidation;
}

export function writeOptions(query: Query): WriteQuery {
  const validation = one(query, 'fieldValidation') || 'Strict';
  if (validation !== 'Strict' && validation !== 'Warn' && validation !== 'Ignore') {
    throw badRequest(`fieldValidation: "${validation}" is not one of Strict, Warn, Ignore`);
  }
  return { dryRun: dryRun(all(query, 'dryRun')), fieldValidation: validation };
}

/** `dryRun` of a query or of DeleteOptions: absent, or ["All"]. */
export function dryRun(given: unknown): boolean {
  const values: unknown[] =
    given === undefined || given === null ? [] : Array.isArray(given) ? given : [given];
  for (const value of values) {
    if (value !== 'All') throw badRequest(`dryRun: ${JSON.stringify(value)} is not "All"`);
  }
  return values.length > 0;
}

export function flag(query: Query, name: string): boolean {
  const text = one(query, name);
  if (text === 'true' || text === '1') return true;
  if (text === '' || text === 'false' || text === '0') return false;
  throw badRequest(`${name}: "${text}" is not true or false`);
}

/** What stands beside a row's cells. */
export function includeObject(query: Query): ListOptions['includeObject'] {
  const text = one(query, 'includeObject') || 'Metadata';
  if (text === 'Metadata' || text === 'Object' || text === 'None') return text;
  throw badRequest(`includeObject: "${text}" is not one of None, Metadata, Object`);
}

function integer(query: Query, name: string): number | undefined {
  const text = one(query, name);
  if (text === '') return undefined;
  const value = Number(text);
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(value)) {
    throw badRequest(`${name}: "${text}" is not a whole number`);
  }
  return value;
}

function one(query: Query, name: string): string {
  return all(query, name).at(-1) ?? '';
}

function all(query: Query, name: string): readonly string[] {
  const value = query[name];
  return value === undefined ? [] : typeof value === 'string' ? [value] : value;
}

function forbidden(field: string, message: string): Error {
  const subject = { plural: '', kind: 'ListOptions', name: '' };
  return invalid(subject, [
    { reason: 'FieldValueForbidden', field, message: `Forbidden: ${field} ${message}` },
  ]);
}
