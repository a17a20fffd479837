/** This process or machine has no more of something: files, ports, memory. The dependency has no part in it. */
const EXHAUSTED = new Set(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'EADDRINUSE', 'ENOBUFS', 'ENOMEM']);
const CONNECT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EAI_NODATA',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'UND_ERR_CONNECT_TIMEOUT',
]);
const RESET = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED', 'UND_ERR_SOCKET', 'HPE_INVALID_CONSTANT']);
const MAX_DEPTH = 5;

export type TransportFault = 'connect' | 'reset' | 'exhausted';

/**
 * What a thrown error says about the connection: `connect` = the dependency cannot have seen the call, `reset` = it
 * may have, `exhausted` = the call was not made for want of something here, which is nobody's failure. Undefined =
 * none of these; then the error is the application's own.
 */
export function transportFault(error: unknown, depth = 0): TransportFault | undefined {
  if (depth > MAX_DEPTH || !(error instanceof Error)) return undefined;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (EXHAUSTED.has(code)) return 'exhausted';
  if (CONNECT.has(code) || ('syscall' in error && error.syscall === 'connect')) return 'connect';
  if (RESET.has(code)) return 'reset';
  // Several addresses were tried: it is a connect fault only when it is one for all of them.
  if (error instanceof AggregateError && error.errors.length > 0) {
    const faults = error.errors.map((inner) => transportFault(inner, depth + 1));
    if (faults.every((fault) => fault === 'connect')) return 'connect';
    return faults.find((fault) => fault !== undefined);
  }
  return transportFault(error.cause, depth + 1);
}
