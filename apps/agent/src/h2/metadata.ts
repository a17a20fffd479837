import { sensitiveHeaders, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2';

/** Of one connection only, or said anew to the next hop. */
const NOT_PASSED_ON = new Set([
  'connection',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Headers or trailers for the other side, without pseudo-headers, those of one connection, and `dropped`. A name that comes
 * several times stays several values in their order, binary ones included; what must never be indexed by header
 * compression stays so.
 */
export function passedOn(
  raw: readonly string[],
  parsed: IncomingHttpHeaders,
  dropped: ReadonlySet<string>,
): OutgoingHttpHeaders {
  const kept: OutgoingHttpHeaders = {};
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] ?? '';
    if (name.startsWith(':') || NOT_PASSED_ON.has(name) || dropped.has(name)) continue;
    const value = raw[at + 1] ?? '';
    const former = kept[name];
    if (former === undefined) kept[name] = value;
    else if (Array.isArray(former)) former.push(value);
    // Of a name that may come once only, the reader has left out all but the first.
    else if (parsed[name] !== former) kept[name] = [String(former), value];
  }
  if (kept['te'] !== undefined) kept['te'] = 'trailers';
  const sensitive: unknown = Reflect.get(parsed, sensitiveHeaders);
  if (Array.isArray(sensitive) && sensitive.length > 0) Reflect.set(kept, sensitiveHeaders, sensitive);
  return kept;
}

/** The first value of a header; undefined = it is not there. */
export function valueOf(headers: OutgoingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value === undefined ? undefined : String(value);
}

/** All values of a list header in one; undefined = it is not there. */
export function listIn(headers: OutgoingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : value === undefined ? undefined : String(value);
}
