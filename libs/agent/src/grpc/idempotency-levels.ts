import { ArgumentError } from '../agent-error.js';
import { isObject, quote } from '../option-shapes.js';
import { type IdempotencyLevel, operationOf } from './grpc-options.js';

/** A method of a service definition; proto-loader keeps its options. */
interface DefinedMethod {
  readonly path: string;
  readonly options?: unknown;
}

const CALLED = 'idempotencyLevels';
const EXPECTED = "must be what @grpc/proto-loader's loadSync gives, or one service of it";

/**
 * Reads `idempotency_level` of every method of definitions that kept their options: what @grpc/proto-loader loaded, whole
 * (by service name, messages beside them) or one service. Methods without one are left out. Throws `ArgumentError` for
 * anything else.
 */
export function idempotencyLevels(...definitions: readonly object[]): Record<string, IdempotencyLevel> {
  if (definitions.length === 0) throw new ArgumentError([`the definition (absent) ${EXPECTED}`], CALLED);
  const problems: string[] = [];
  const levels: Record<string, IdempotencyLevel> = {};
  for (const definition of definitions) {
    const methods = methodsOf(definition);
    if (typeof methods === 'string') problems.push(methods);
    else {
      for (const { path, options } of methods) {
        const level = levelIn(options);
        if (level !== undefined) levels[operationOf(path)] = level;
      }
    }
  }
  if (problems.length > 0) throw new ArgumentError(problems, CALLED);
  return levels;
}

/** Or what is wrong with it. */
function methodsOf(definition: unknown): readonly DefinedMethod[] | string {
  if (typeof definition === 'function' && 'service' in definition) {
    return `a client's constructor ${EXPECTED}: its "service"`;
  }
  if (!isObject(definition) || Object.keys(definition).length === 0) {
    return `${quote(definition)} ${EXPECTED}`;
  }
  const members = Object.entries(definition);
  const methods: DefinedMethod[] = [];
  for (const [name, member] of members) {
    if (isMethod(member)) methods.push(member);
    else if (isService(member)) methods.push(...Object.values(member));
    else if (!isMessageOrEnum(member)) {
      return `a definition with ${JSON.stringify(name)} ${quote(member)}, which is no service, method or message, ${EXPECTED}`;
    }
  }
  return methods;
}

function isMethod(value: unknown): value is DefinedMethod {
  return isObject(value) && typeof value['path'] === 'string';
}

function isService(value: unknown): value is Readonly<Record<string, DefinedMethod>> {
  return isObject(value) && Object.values(value).every(isMethod);
}

function isMessageOrEnum(value: unknown): boolean {
  return isObject(value) && typeof value['format'] === 'string';
}

function levelIn(options: unknown): IdempotencyLevel | undefined {
  const level = isObject(options) ? options['idempotency_level'] : undefined;
  return level === 'NO_SIDE_EFFECTS' || level === 'IDEMPOTENT' ? level : undefined;
}
