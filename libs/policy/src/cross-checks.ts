/** Refuses what the schema allows but can never work, each with its reason. Works beside problems of the schema. */
import { breakerProblems } from './checks/breaker.js';
import { callProblems } from './checks/calls.js';
import { fallbackProblems } from './checks/fallback.js';
import { Reader } from './checks/reader.js';
import { problem, type Problem } from './problem.js';
import { MAX_ANNOTATIONS_TOTAL } from './schema/metadata.js';
import { utf8Length } from './utf8-length.js';

/** All of them. `value` is a plain copy; what is malformed in it is taken as absent. */
export function crossProblems(value: unknown): Problem[] {
  const read = new Reader(value);
  return [
    ...annotationSize(read),
    ...callProblems(read),
    ...breakerProblems(read),
    ...fallbackProblems(read),
  ];
}

function annotationSize(read: Reader): Problem[] {
  const path = ['metadata', 'annotations'];
  const annotations = read.any(...path);
  if (typeof annotations !== 'object' || annotations === null) return [];
  let total = 0;
  for (const [key, text] of Object.entries(annotations)) {
    total += utf8Length(key) + (typeof text === 'string' ? utf8Length(text) : 0);
  }
  if (total <= MAX_ANNOTATIONS_TOTAL) return [];
  const allowed = `${MAX_ANNOTATIONS_TOTAL} bytes in all`;
  return [problem(path, 'invalid', { message: `hold ${total} bytes in all`, allowed })];
}
