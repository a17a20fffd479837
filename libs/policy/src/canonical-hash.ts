/** A short stable hash of plain data: same data, same text, whatever the order of keys. */

/** JSON with sorted keys; Sets as sorted lists. For finite plain data. */
export function canonicalJson(value: unknown): string {
  if (value instanceof Set) return canonicalJson([...(value as Set<unknown>)].map(String).sort());
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`);
    return `{${members.join(',')}}`;
  }
  return JSON.stringify(value) ?? 'null';
}

const OFFSET_BASIS = 0xcbf29ce484222325n;
const PRIME = 0x100000001b3n;

/** FNV-1a, 64 bits, over the UTF-16 code units, low byte first: 16 hex digits. Not for secrets. */
export function hashText(text: string): string {
  let hash = OFFSET_BASIS;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    hash = BigInt.asUintN(64, (hash ^ BigInt(unit & 0xff)) * PRIME);
    hash = BigInt.asUintN(64, (hash ^ BigInt(unit >> 8)) * PRIME);
  }
  return hash.toString(16).padStart(16, '0');
}
