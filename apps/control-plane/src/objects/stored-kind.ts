import type { ApiObject } from './api-object.js';

/** One thing wrong with an object; `unknown` is what field validation speaks of. */
export interface FieldProblem {
  readonly reason: 'unknown' | 'required' | 'invalid' | 'forbidden' | 'duplicate';
  readonly path: string;
  readonly segments: readonly (string | number)[];
  readonly message: string;
  readonly suggestion?: string;
}

/** A kind that lives in the store: what the generic reads and writes need to know of it. */
export interface StoredKind {
  readonly plural: string;
  readonly kind: string;
  /** Strict and complete; empty = valid. `object` is a plain copy without the optional nulls. */
  validate(value: unknown): {
    readonly problems: readonly FieldProblem[];
    readonly object: ApiObject | undefined;
  };
  /** Advice about a valid object, for `Warning` headers. */
  advice(object: ApiObject): readonly string[];
}
