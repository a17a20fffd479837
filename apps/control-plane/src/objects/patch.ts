import fastJsonPatch, { type Operation } from 'fast-json-patch';
import { ApiError, badRequest } from '../errors/api-error.js';
import { isMap, type JsonMap } from './json-value.js';

const MAX_OPERATIONS = 1_000;

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
    try {
      return fastJsonPatch.applyPatch(structuredClone(target), operations, true, false, true).newDocument;
    } catch (error) {
      throw patchFailed(error, operations);
    }
  };
}

function operation(value: unknown, index: number): Operation {
  if (isMap(value) && typeof value['op'] === 'string' && typeof value['path'] === 'string') {
    return value as JsonMap & Operation;
  }
  throw badRequest(`operation ${index} of the JSON patch needs "op" and "path"`);
}

function patchFailed(error: unknown, operations: readonly Operation[]): ApiError {
  const { name, index } = error as { name?: string; index?: number };
  const at = index === undefined ? undefined : operations[index];
  const what =
    at === undefined ? 'the JSON patch' : `operation ${index} (${at.op} ${at.path}) of the JSON patch`;
  const why = name === 'TEST_OPERATION_FAILED' ? 'the test failed' : 'it cannot be applied to this object';
  return new ApiError('Invalid', `${what}: ${why}`, {
    causes: [{ reason: 'FieldValueInvalid', field: at?.path ?? '', message: why }],
  });
}
