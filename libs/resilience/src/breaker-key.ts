import type { CallRequest } from './call.js';

/** Longest key text, in UTF-16 units; longer ones are cut and end in a hash of the whole. */
const LONGEST = 256;

/**
 * How calls are told apart by what the policy counts: `target` alone, or "operation=GET /v1/recs,call.shard=7".
 * A label or attribute that is not there counts as empty.
 */
export function keyMaker(
  per: readonly string[],
  labels: Readonly<Record<string, string>> = {},
): (request: CallRequest) => string {
  const parts = per.length === 0 ? ['target'] : per;
  if (parts.every((part) => part === 'target')) return () => 'target';
  return (request) => shorten(parts.map((part) => partOf(part, request, labels)).join(','));
}

function partOf(part: string, request: CallRequest, labels: Readonly<Record<string, string>>): string {
  if (part === 'operation') return `operation=${request.operation}`;
  if (part.startsWith('caller.')) return `${part}=${own(labels, part.slice('caller.'.length))}`;
  if (part.startsWith('call.')) return `${part}=${own(request.attributes, part.slice('call.'.length))}`;
  return part;
}

function own(values: Readonly<Record<string, string>> | undefined, name: string): string {
  return values !== undefined && Object.hasOwn(values, name) ? (values[name] ?? '') : '';
}

function shorten(key: string): string {
  if (key.length <= LONGEST) return key;
  // FNV-1a: short, stable, and no more is needed to tell long keys apart.
  let hash = 0x81_1c_9d_c5;
  for (let index = 0; index < key.length; index += 1) {
    hash = Math.imul(hash ^ key.charCodeAt(index), 0x01_00_01_93) >>> 0;
  }
  return `${key.slice(0, LONGEST - 9)}~${hash.toString(16).padStart(8, '0')}`;
}
