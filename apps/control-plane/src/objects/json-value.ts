import { badRequest } from '../errors/api-error.js';

const FORBIDDEN = new Set(['__proto__', 'constructor', 'prototype']);
const MAX_DEPTH = 64;

export type JsonMap = Readonly<Record<string, unknown>>;

export function isMap(value: unknown): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Parses a request body: one JSON value, without keys that reach into prototypes, at most 64 levels deep. */
export function parseJson(bytes: Buffer): unknown {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    throw badRequest(
      `the body is not valid JSON: ${error instanceof SyntaxError ? error.message : 'not UTF-8'}`,
    );
  }
  refuseUnsafe(value);
  return value;
}

/** Keys that reach into prototypes, and depth that would overflow a stack later. */
export function refuseUnsafe(value: unknown, depth = 0): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth >= MAX_DEPTH) throw badRequest(`it is nested deeper than ${MAX_DEPTH} levels`);
  for (const [key, child] of Object.entries(value)) {
    if (!Array.isArray(value) && FORBIDDEN.has(key)) throw badRequest(`the key "${key}" is not allowed`);
    refuseUnsafe(child, depth + 1);
  }
}

/** A record of the store as a map; undefined when it is none: somebody wrote it by hand. */
export function readRecord(text: string | undefined): JsonMap | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isMap(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Equal as JSON, whatever the order of keys; a key with `undefined` is an absent one. */
export function jsonEquals(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => jsonEquals(item, b[index]));
  }
  if (!isMap(a) || !isMap(b)) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => jsonEquals(a[key], b[key]));
}
