import { badRequest } from '../errors/api-error.js';

type Labels = Readonly<Record<string, string>>;
type Requirement = (labels: Labels) => boolean;

const PART = String.raw`[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?`;
const KEY = new RegExp(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?${PART}$`);
const VALUE = new RegExp(`^(${PART})?$`);
const MAX_LENGTH = 8_192;

/**
 * Kubernetes' label selectors: "a=b", "a==b", "a!=b", "a in (b,c)", "a notin (b,c)", "a", "!a", joined by commas.
 * "!=" and "notin" also match an object without the label. Empty text matches everything.
 */
export function parseLabelSelector(text: string): (labels: Labels | undefined) => boolean {
  if (text.length > MAX_LENGTH) throw badRequest(`labelSelector is longer than ${MAX_LENGTH} characters`);
  const requirements = split(text).map(parseRequirement);
  return (labels = {}) => requirements.every((holds) => holds(labels));
}

/** Splits at commas outside brackets. */
function split(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (let index = 0; index <= text.length; index += 1) {
    const letter = text[index];
    if (letter === '(') depth += 1;
    else if (letter === ')') depth -= 1;
    else if (letter === undefined || (letter === ',' && depth === 0)) {
      parts.push(text.slice(from, index).trim());
      from = index + 1;
    }
  }
  return parts.length === 1 && parts[0] === '' ? [] : parts;
}

function parseRequirement(text: string): Requirement {
  const set = /^(\S+)\s+(in|notin)\s*\(([^()]*)\)$/.exec(text);
  if (set) return inSet(key(set[1], text), { values: set[3] ?? '', text, wanted: set[2] === 'in' });
  const compared = /^([^=!\s]+)\s*(==|=|!=)\s*(\S*)$/.exec(text);
  if (compared) {
    return inSet(key(compared[1], text), { values: compared[3] ?? '', text, wanted: compared[2] !== '!=' });
  }
  const absent = text.startsWith('!');
  const name = key(absent ? text.slice(1).trim() : text, text);
  return (labels) => Object.hasOwn(labels, name) !== absent;
}

function inSet(name: string, set: { values: string; text: string; wanted: boolean }): Requirement {
  const values = new Set(set.values.split(',').map((value) => value.trim()));
  for (const value of values) if (!VALUE.test(value) || value.length > 63) throw wrong(set.text);
  return (labels) => (Object.hasOwn(labels, name) && values.has(labels[name] ?? '')) === set.wanted;
}

function key(name: string | undefined, text: string): string {
  if (name === undefined || !KEY.test(name) || name.length > 317) throw wrong(text);
  return name;
}

function wrong(text: string): Error {
  return badRequest(`unable to parse labelSelector requirement "${text}"`);
}
