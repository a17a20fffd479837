import { findResource, RESOURCES, type Resource } from '@bulwark/views';
import { UsageError } from './command-error.js';

/** What the words of a command ask for. No names = all there are. */
export interface Target {
  readonly resource: Resource;
  readonly names: readonly string[];
}

const EXAMPLE = `Kinds: ${RESOURCES.map((one) => [one.plural, ...one.shortNames].join(', ')).join(' · ')}`;

export function resourceNamed(word: string): Resource {
  const resource = findResource(word);
  if (resource === undefined) throw new UsageError(`there is no kind "${word}"`, EXAMPLE);
  return resource;
}

/** `policies`, `policies,breakers`, `policy a b`, `policy/a breaker/b`. */
export function parseTargets(words: readonly string[]): readonly Target[] {
  const [first, ...rest] = words;
  if (first === undefined) throw new UsageError('say what: a kind, or kind/name', EXAMPLE);
  if (words.some((word) => word.includes('/'))) return words.map(parseKindAndName);
  const kinds = first.split(',').filter((word) => word !== '');
  if (kinds.length === 0) throw new UsageError(`"${first}" names no kind`, EXAMPLE);
  if (kinds.length > 1 && rest.length > 0) {
    throw new UsageError('several kinds and names do not go together', 'Example: policy/a breaker/b');
  }
  return [...new Set(kinds.map(resourceNamed))].map((resource) => ({ resource, names: [...new Set(rest)] }));
}

function parseKindAndName(word: string): Target {
  const [kind = '', name = '', ...more] = word.split('/');
  if (kind === '' || name === '' || more.length > 0) {
    throw new UsageError(`"${word}" is not kind/name`, 'Example: policy/a breaker/b');
  }
  return { resource: resourceNamed(kind), names: [name] };
}
