import fastJsonPatch, { type Operation } from 'fast-json-patch';
import { ApiError, badRequest } from '../errors/api-error.js';
import { isMap, refuseUnsafe, type JsonMap } from './json-value.js';

const MAX_OPERATIONS = 1_000;
/** Of JSON text that the `copy` operations of one patch copy in all: each could double the object. */
const MAX_COPIED = 1024 * 1024;

export type Patch = (target: unknown) => unknown;

export const PATCH_TYPES = ['application/merge-patch+json', 'application/json-patch+json'];

/** The patch of a body by its media type; 415 for any other type. */
export function parsePatch(mediaType: string, body: unknown): Patch {
  if (mediaType === 'application/merge-patch+json') return (target) => mergePatch(target, body);
  if (mediaType === 'application/json-patch+json') return jsonPatch(body);
  throw new ApiError(
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${PATCH_TYPES.join(', ')}`,
  );
}

/** RFC 7396: null removes, maps merge, anything else replaces. Neither argument is changed. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isMap(patch)) return patch;
  const merged = new Map(Object.entries(isMap(target) ? target : {}));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, mergePatch(merged.get(key), value));
  }
  return Object.fromEntries(merged);
}

/** RFC 6902. A failed `test` or a path that is not there is told with its operation. */
function jsonPatch(body: unknown): Patch {
  if (!Array.isArray(body)) throw badRequest('a JSON patch is a list of operations');
  if (body.length > MAX_OPERATIONS) throw badRequest(`a JSON patch has at most ${MAX_OPERATIONS} operations`);
  const operations: Operation[] = body.map(operation);
  return (target) => {
    let document: unknown = structuredClone(target);
    let copied = 0;
    for (const [index, one] of operations.entries()) {
      copied += copiedBy(one, document);
      if (copied > MAX_COPIED) throw badRequest(`the JSON patch copies more than ${MAX_COPIED} characters`);
      document = applied(document, one, index);
    }
    refuseUnsafe(document);
    return document;
  };
}

function applied(document: unknown, one: Operation, index: number): unknown {
  try {
    return fastJsonPatch.applyOperation(document, one, true, true, true, index).newDocument;
  } catch (error) {
    throw patchFailed(error, { index, operation: one });
  }
}

function copiedBy(one: Operation, document: unknown): number {
  if (one.op !== 'copy') return 0;
  try {
    const value: unknown = fastJsonPatch.getValueByPointer(document, one.from);
    return JSON.stringify(value)?.length ?? 0;
  } catch {
    // There is no such place: the operation itself is refused with that reason.
    return 0;
  }
}

function operation(value: unknown, index: number): Operation {
  if (isMap(value) && typeof value['op'] === 'string' && typeof value['path'] === 'string') {
    return value as JsonMap & Operation;
  }
  throw badRequest(`operation ${index} of the JSON patch needs "op" and "path"`);
}

function patchFailed(error: unknown, failed: { index: number; operation: Operation }): ApiError {
  const { index, operation: one } = failed;
  const { name } = error as { name?: string };
  const why = name === 'TEST_OPERATION_FAILED' ? 'the test failed' : 'it cannot be applied to this object';
  return new ApiError('Invalid', `operation ${index} (${one.op} ${one.path}) of the JSON patch: ${why}`, {
    causes: [{ reason: 'FieldValueInvalid', field: one.path, message: why }],
  });
}
