import { ApiError, invalid, type Cause } from '../errors/api-error.js';
import type { ApiObject } from './api-object.js';
import type { FieldProblem, StoredKind } from './stored-kind.js';

export type FieldValidation = 'Strict' | 'Warn' | 'Ignore';

export interface Validated {
  readonly object: ApiObject;
  readonly warnings: readonly string[];
}

const REASONS: Readonly<Record<FieldProblem['reason'], string>> = {
  unknown: 'FieldValueForbidden',
  required: 'FieldValueRequired',
  invalid: 'FieldValueInvalid',
  forbidden: 'FieldValueForbidden',
  duplicate: 'FieldValueDuplicate',
};

/**
 * A valid object, or all that is wrong with it in one error. Unknown fields alone are 400 "strict decoding error" as in
 * Kubernetes; with other problems beside them everything is told as 422. Warn and Ignore drop unknown fields.
 */
export function validated(
  value: unknown,
  { kind, name, mode }: { kind: StoredKind; name: string; mode: FieldValidation },
): Validated {
  const first = kind.validate(value);
  if (first.object !== undefined) return { object: first.object, warnings: [] };
  const unknown = first.problems.filter(isUnknown);
  if (mode === 'Strict' || unknown.length === 0) throw refusal(first.problems, kind, name);
  const second = kind.validate(without(value, unknown));
  if (second.object === undefined) throw refusal(second.problems, kind, name);
  return { object: second.object, warnings: mode === 'Warn' ? unknown.map(fieldText) : [] };
}

/** A duplicate is an entry of a list here: leaving it out would be another list. */
function isUnknown({ reason }: FieldProblem): boolean {
  return reason === 'unknown';
}

function refusal(problems: readonly FieldProblem[], kind: StoredKind, name: string): ApiError {
  const causes = problems.map(causeOf);
  if (problems.every(isUnknown)) {
    const list = problems.map(fieldText).join(', ');
    return new ApiError(
      'BadRequest',
      `${kind.kind} in version "v1" cannot be handled as a ${kind.kind}: strict decoding error: ${list}`,
      { name, group: 'bulwark.dev', kind: kind.kind, causes },
    );
  }
  return invalid({ plural: kind.plural, kind: kind.kind, name }, causes);
}

function causeOf(problem: FieldProblem): Cause {
  const hint = problem.suggestion === undefined ? '' : `; did you mean ${problem.suggestion}?`;
  return { reason: REASONS[problem.reason], field: problem.path, message: `${problem.message}${hint}` };
}

function fieldText({ reason, path, suggestion }: FieldProblem): string {
  const hint = suggestion === undefined ? '' : ` (did you mean "${suggestion}"?)`;
  return `${reason} field "${path}"${hint}`;
}

/** A copy without the fields of these problems. */
function without(value: unknown, problems: readonly FieldProblem[]): unknown {
  const copy = structuredClone(value);
  for (const { segments } of problems) {
    let place: unknown = copy;
    for (const segment of segments.slice(0, -1)) {
      place = (place as Record<string | number, unknown> | undefined)?.[segment];
    }
    const last = segments.at(-1);
    if (last !== undefined && typeof place === 'object' && place !== null)
      Reflect.deleteProperty(place, last);
  }
  return copy;
}
