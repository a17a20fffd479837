/**
 * The host a channel's target names, which is the service when nobody said otherwise: "dns:///fraud.shop:8080" is
 * "fraud.shop". The path of a unix socket is its own name. "" = the target names none.
 */
export function hostOfTarget(target: string): string {
  const { scheme, rest } = withoutScheme(target);
  if (scheme.startsWith('unix')) return rest;
  // An authority ("//8.8.8.8/") names who resolves, not who is called.
  const path = rest.startsWith('//') ? rest.slice(rest.indexOf('/', 2) + 1) : rest;
  const first = path.split(',', 1)[0] ?? '';
  const bracketed = /^\[([^\]]*)\]/.exec(first);
  if (bracketed !== null) return bracketed[1] ?? '';
  // More than one colon: an IPv6 address without a port.
  const colons = first.split(':').length - 1;
  return colons === 1 ? first.slice(0, first.indexOf(':')) : first;
}

const SCHEMES = new Set([
  'dns',
  'ipv4',
  'ipv6',
  'ip',
  'unix',
  'unix-abstract',
  'xds',
  'passthrough',
  'vsock',
]);

function withoutScheme(target: string): { scheme: string; rest: string } {
  const end = target.indexOf(':');
  const scheme = end < 0 ? '' : target.slice(0, end);
  return SCHEMES.has(scheme) ? { scheme, rest: target.slice(end + 1) } : { scheme: '', rest: target };
}
