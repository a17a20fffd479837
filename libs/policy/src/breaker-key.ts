import { utf8Length } from './utf8-length.js';

/** Longest key text, in characters. */
export const MAX_BREAKER_KEY = 256;
/** And in bytes of UTF-8: what the control plane takes in a report. */
const MAX_BYTES = 512;
/** A UTF-16 unit has three bytes at most, so a text of this length is short enough in any script. */
const SURELY_SHORT = Math.floor(MAX_BYTES / 3);

/** One call, as far as keys are made of it. */
export interface KeyedCall {
  readonly operation: string;
  /** Labels of the calling agent. */
  readonly callerLabels: Readonly<Record<string, string>>;
  /** Given with the call; absent = none. */
  readonly attributes?: Readonly<Record<string, string>> | undefined;
}

/**
 * The key a breaker is kept under, for people and for comparison: "target", "operation=GET /v1/recs",
 * "caller.zone=a,call.shard=7", in the order of `per`. A missing label or attribute gives an empty value, so those
 * calls share one breaker. A longer text than MAX_BREAKER_KEY (or than 512 bytes) is cut, and calls that differ only beyond it share one.
 */
export function breakerKeyFor(per: readonly string[], call: KeyedCall): string {
  const several = per.length > 1;
  let text = '';
  for (const part of per) {
    const one = keyPart(part, call, several);
    text = text === '' ? one : `${text},${one}`;
  }
  return text.length <= SURELY_SHORT ? text : cut(text);
}

/** The longest beginning within both bounds that ends with a whole character. */
function cut(text: string): string {
  if (text.length <= MAX_BREAKER_KEY && utf8Length(text) <= MAX_BYTES) return text;
  let end = 0;
  let bytes = 0;
  for (const character of text) {
    bytes += utf8Length(character);
    if (bytes > MAX_BYTES || end + character.length > MAX_BREAKER_KEY) break;
    end += character.length;
  }
  return text.slice(0, end);
}

function keyPart(part: string, call: KeyedCall, several: boolean): string {
  if (part === 'target') return part;
  const value = partValue(part, call);
  // A comma inside one value must not look like the next part.
  return `${part}=${several && value.includes(',') ? value.replaceAll(',', '%2C') : value}`;
}

function partValue(part: string, call: KeyedCall): string {
  if (part === 'operation') return call.operation;
  const from = part.startsWith('caller.') ? call.callerLabels : call.attributes;
  const name = part.slice(part.indexOf('.') + 1);
  return from !== undefined && Object.hasOwn(from, name) ? (from[name] ?? '') : '';
}
