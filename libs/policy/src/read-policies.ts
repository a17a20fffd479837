import { DocumentError } from './document-error.js';
import { parseDocuments } from './documents.js';
import { nearestWord } from './field-names.js';
import { problem, type Problem } from './problem.js';
import { POLICY_KIND, type ResiliencePolicy } from './schema/policy.js';
import type { SourceDocument } from './source-document.js';
import { at } from './structure.js';
import { validatePolicy } from './validate.js';

export interface PolicySource {
  /** A file's name, "stdin", …: stands in every problem. */
  readonly name: string;
  readonly text: string;
}

export interface SourcedPolicy {
  readonly policy: ResiliencePolicy;
  readonly document: SourceDocument;
}

/**
 * Every policy of several texts, in order, or every problem in all of them: nothing is given unless all are valid.
 * `namespace` is that of documents without one; it only tells whether two documents name the same policy.
 * @throws DocumentError, and nothing else.
 */
export async function readPolicies(
  sources: readonly PolicySource[],
  { namespace }: { readonly namespace: string },
): Promise<readonly SourcedPolicy[]> {
  const failures: DocumentError[] = [];
  const problems: Problem[] = [];
  const policies: SourcedPolicy[] = [];
  const seen = new Map<string, SourceDocument>();
  for (const source of sources) {
    try {
      for (const document of await parseDocuments(source.text, { source: source.name })) {
        const read = validateDocument(document);
        problems.push(...read.problems);
        if (read.policy === undefined) continue;
        problems.push(...sameName(read.policy, { document, seen, namespace }));
        policies.push({ policy: read.policy, document });
      }
    } catch (error) {
      if (!(error instanceof DocumentError)) throw error;
      failures.push(error);
      problems.push(...error.problems);
    }
  }
  if (problems.length > 0) throw new DocumentError(failures[0]?.code ?? 'BULWARK_DOCUMENT_INVALID', problems);
  return policies;
}

/** Validates one document; problems carry its place and line. */
export function validateDocument(document: SourceDocument): {
  readonly policy?: ResiliencePolicy;
  readonly problems: readonly Problem[];
} {
  const kind = kindProblem(document.value);
  const checked =
    kind === undefined ? validatePolicy(document.value) : { ok: false as const, problems: [kind] };
  if (checked.ok) return { policy: checked.policy, problems: [] };
  return { problems: checked.problems.map((one) => located(one, document)) };
}

/** Of another kind, only the kind is worth a word: every field of it would be unknown here. */
function kindProblem(value: unknown): Problem | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return problem([], 'invalid', {
      message: 'is no object with apiVersion, kind, metadata and spec',
      value,
    });
  }
  const kind = at(value, ['kind']);
  if (kind === POLICY_KIND || kind === undefined) return undefined;
  const suggestion = typeof kind === 'string' ? nearestWord(kind, [POLICY_KIND]) : undefined;
  return problem(['kind'], 'invalid', {
    message: `${typeof kind === 'string' ? kind : 'this'} is not a known kind`,
    allowed: POLICY_KIND,
    value: kind,
    suggestion,
  });
}

function located(one: Problem, document: SourceDocument): Problem {
  const line = document.lineOf(one.segments);
  return { ...one, at: { ...document.at, ...(line === undefined ? {} : { line }) } };
}

function sameName(
  policy: ResiliencePolicy,
  context: {
    readonly document: SourceDocument;
    readonly seen: Map<string, SourceDocument>;
    readonly namespace: string;
  },
): Problem[] {
  const { document, seen } = context;
  const name = `${policy.metadata.namespace ?? context.namespace}/${policy.metadata.name}`;
  const first = seen.get(name);
  if (first === undefined) {
    seen.set(name, document);
    return [];
  }
  const place = first.at.line === undefined ? first.at.source : `${first.at.source}:${first.at.line}`;
  const message = `${name} is in ${place} already`;
  return [
    located(problem(['metadata', 'name'], 'duplicate', { message, allowed: 'each policy once' }), document),
  ];
}
