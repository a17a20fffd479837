import { randomInt } from 'node:crypto';
import { badRequest, conflict, invalid, type Cause } from '../errors/api-error.js';
import { API_VERSION, type ApiObject, type Metadata } from './api-object.js';
import { isMap, jsonEquals, type JsonMap } from './json-value.js';
import type { StoredKind } from './stored-kind.js';

/** Metadata that people write; the rest of the stored metadata is the server's. */
const KEPT = ['labels', 'annotations', 'finalizers', 'ownerReferences', 'generateName'] as const;
const SUFFIX_LETTERS = 'bcdfghjklmnpqrstvwxz2456789';

/**
 * The object of a body, named as the request's path names it. Refuses another kind, and a name or namespace that
 * contradicts the path.
 */
export function addressed(
  body: unknown,
  kind: StoredKind,
  path: { readonly namespace: string; readonly name: string | undefined },
): JsonMap {
  if (!isMap(body)) throw badRequest(`the body must be one ${kind.kind} object`);
  if (body['apiVersion'] !== API_VERSION || body['kind'] !== kind.kind) {
    throw badRequest(
      `the object's apiVersion and kind (${text(body['apiVersion'])}, ${text(body['kind'])}) are not those of the ` +
        `request (${API_VERSION}, ${kind.kind})`,
    );
  }
  const metadata = isMap(body['metadata']) ? body['metadata'] : {};
  agree('namespace', metadata['namespace'], path.namespace);
  if (path.name !== undefined) agree('name', metadata['name'], path.name);
  const name = path.name ?? nameOf(metadata);
  return {
    ...body,
    metadata: { ...metadata, namespace: path.namespace, ...(name === undefined ? {} : { name }) },
  };
}

function agree(what: string, given: unknown, path: string): void {
  if (given === undefined || given === null || given === '' || given === path) return;
  throw badRequest(
    `the ${what} of the object (${text(given)}) does not match the ${what} of the request (${path})`,
  );
}

function nameOf(metadata: JsonMap): string | undefined {
  const { name, generateName } = metadata;
  if (typeof name === 'string' && name !== '') return name;
  if (typeof generateName !== 'string' || generateName === '') return undefined;
  const suffix = Array.from({ length: 5 }, () => SUFFIX_LETTERS[randomInt(SUFFIX_LETTERS.length)]).join('');
  return `${generateName}${suffix}`;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'absent');
}

export interface Stamp {
  readonly uid: string;
  /** RFC 3339. */
  readonly creationTimestamp: string;
}

/** What is stored for a new object: spec and people's metadata, with the server's own beside it. */
export function stampNew(object: ApiObject, stamp: Stamp): ApiObject {
  return stored(object, { ...stamp, generation: 1 });
}

/** What is stored for a changed object. The generation counts changes of spec only. */
export function stampChange(object: ApiObject, existing: ApiObject): ApiObject {
  const { uid = '', creationTimestamp = '', generation = 1, deletionTimestamp } = existing.metadata;
  const changed = !jsonEquals(object.spec, existing.spec);
  return stored(object, {
    uid,
    creationTimestamp,
    generation: changed ? generation + 1 : generation,
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
  });
}

function stored(object: ApiObject, server: JsonMap & { generation: number }): ApiObject {
  const given = object.metadata as Metadata & JsonMap;
  const kept = KEPT.filter((key) => !isEmpty(given[key])).map((key) => [key, given[key]] as const);
  return {
    apiVersion: object.apiVersion,
    kind: object.kind,
    metadata: { name: given.name, namespace: given.namespace, ...server, ...Object.fromEntries(kept) },
    spec: object.spec,
  };
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  return Array.isArray(value) ? value.length === 0 : isMap(value) && Object.keys(value).length === 0;
}

/** What a writer says the object still is, against what it is. */
export interface Expectation {
  readonly uid?: unknown;
  readonly resourceVersion?: unknown;
}

export function expectSame(expected: Expectation, existing: ApiObject, kind: StoredKind): void {
  const subject = { plural: kind.plural, kind: kind.kind, name: existing.metadata.name };
  const { uid, resourceVersion } = existing.metadata;
  if (typeof expected.uid === 'string' && expected.uid !== '' && expected.uid !== uid) {
    throw conflict(
      subject,
      `Precondition failed: UID in precondition: ${expected.uid}, UID in object meta: ${uid}`,
    );
  }
  const wanted = expected.resourceVersion;
  if (typeof wanted === 'string' && wanted !== '' && wanted !== resourceVersion) throw conflict(subject);
}

/** A name for a new object is needed before anything else can be told about it. */
export function requireName(object: JsonMap, kind: StoredKind): string {
  const metadata = isMap(object['metadata']) ? object['metadata'] : {};
  if (typeof metadata['name'] === 'string' && metadata['name'] !== '') return metadata['name'];
  const cause: Cause = {
    reason: 'FieldValueRequired',
    field: 'metadata.name',
    message: 'Required value: name or generateName is required',
  };
  throw invalid({ plural: kind.plural, kind: kind.kind, name: '' }, [cause]);
}
