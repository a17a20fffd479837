/** JSON merge patches (RFC 7396) and the three-way form of them that kubectl uses. */
export type JsonMap = Readonly<Record<string, unknown>>;

export function isMap(value: unknown): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * What turns `current` into `modified` without touching what others added: fields of `modified` that differ, and null
 * for what `original` (what was applied last) had and `modified` has no more. A null in `modified` removes, too.
 * Lists are replaced whole. `{}` = nothing to do.
 */
export function threeWayPatch(original: JsonMap, modified: JsonMap, current: JsonMap): JsonMap {
  const patch: Record<string, unknown> = {};
  for (const [key, wanted] of Object.entries(modified)) {
    const present = own(current, key);
    if (wanted === null) {
      if (present !== undefined) patch[key] = null;
    } else if (isMap(wanted)) {
      const former = own(original, key);
      const inner = threeWayPatch(isMap(former) ? former : {}, wanted, isMap(present) ? present : {});
      // An empty map is still a section: `retry: {}` asks for retries with their defaults.
      if (!isMap(present)) patch[key] = withoutNulls(wanted);
      else if (Object.keys(inner).length > 0) patch[key] = inner;
    } else if (!sameJson(wanted, present)) patch[key] = wanted;
  }
  for (const key of Object.keys(original)) {
    if (!Object.hasOwn(modified, key) && own(current, key) !== undefined) patch[key] = null;
  }
  return patch;
}

/** By value; the order of a map's keys does not count. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => sameJson(item, b[index]));
  }
  if (isMap(a) && isMap(b)) {
    const keys = Object.keys(a);
    return (
      keys.length === Object.keys(b).length &&
      keys.every((key) => Object.hasOwn(b, key) && sameJson(a[key], b[key]))
    );
  }
  return a === b;
}

/** A map all of whose keys are sorted, down to the leaves: one text for one value. */
export function sortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedKeys);
  if (!isMap(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sortedKeys(value[key])]),
  );
}

function withoutNulls(value: JsonMap): JsonMap {
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, member]) => {
      if (member === null) return [];
      return [[key, isMap(member) ? withoutNulls(member) : member]];
    }),
  );
}

function own(map: JsonMap, key: string): unknown {
  return Object.hasOwn(map, key) ? map[key] : undefined;
}
