export { breakerKeyFor, MAX_BREAKER_KEY, type KeyedCall } from './breaker-key.js';
export { canonicalJson, hashText } from './canonical-hash.js';
export { compilePolicy, type CompiledPolicy, type StoredIdentity } from './compile.js';
export { DEFAULTS } from './defaults.js';
export { DocumentError, type DocumentErrorCode } from './document-error.js';
export { parseDocuments, type ParseOptions } from './documents.js';
export { nearestWord } from './field-names.js';
export { EXAMPLE_POLICY } from './example.js';
export { formatDuration, parseDuration } from './duration.js';
export {
  comparePrecedence,
  matchesCaller,
  policyIndex,
  shadowed,
  shadowersOf,
  type MatchedCall,
  type PolicyIndex,
  type Shadowing,
} from './match.js';
export { formatPercent, parsePercent } from './percent.js';
export {
  formatProblem,
  formatProblems,
  pathText,
  placeText,
  valueText,
  type Path,
  type Problem,
  type ProblemPlace,
  type ProblemReason,
} from './problem.js';
export { readPolicies, validateDocument, type PolicySource, type SourcedPolicy } from './read-policies.js';
export type { JsonSchema } from './schema/builders.js';
export { isDnsLabel } from './schema/metadata.js';
export { API_VERSION, POLICY_KIND, policyJsonSchema, policySchema } from './schema/policy.js';
export type { PolicySpec, ResiliencePolicy } from './schema/policy.js';
export { MAX_DOCUMENTS, MAX_TEXT_BYTES, type SourceDocument } from './source-document.js';
export { validatePolicy, type Validation } from './validate.js';
export { warnings, type Warning } from './warnings.js';
