import type { IncomingMessage } from 'node:http';
import type { Refused } from './call-target.js';

/** What no proxy may pass on, or this one does not; undefined = the request can be looked at further. */
export function checkRequest(
  request: Pick<IncomingMessage, 'rawHeaders' | 'headers' | 'httpVersion'>,
  pseudonym: string,
): Refused | undefined {
  if (request.headers.via?.includes(pseudonym) === true) {
    const detail = 'The request came back to the sidecar it had left: an upstream points at the proxy.';
    return { kind: 'refused', status: 508, word: 'loop', detail };
  }
  const hosts = request.rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host').length;
  if (hosts > 1 || (hosts === 0 && request.httpVersion === '1.1')) {
    // RFC 9112 §3.2: with two of them, two programs could take the request for different services'.
    const detail = `A request has exactly one Host header; this one has ${hosts}.`;
    return { kind: 'refused', status: 400, word: 'bad-host', detail };
  }
  const coding = request.headers['transfer-encoding'];
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') {
    // RFC 9112 §6.1. The next hop would take a compressed body, passed on as chunks alone, for the plain one.
    const detail = `The transfer coding "${coding}" is not known here; only "chunked" is.`;
    return { kind: 'refused', status: 501, word: 'transfer-coding', detail };
  }
  const wanted = upgradeOf(request);
  if (wanted === undefined) return undefined;
  const detail = `An upgrade to ${wanted} would hide what follows from its guards. Connect to the service itself, or call it by plain HTTP.`;
  return { kind: 'refused', status: 501, word: 'upgrade', detail };
}

/** An offer of HTTP/2 is none: some clients make it with each request, and are content without (RFC 9110 §7.8). */
function upgradeOf({ headers }: Pick<IncomingMessage, 'headers'>): string | undefined {
  const named =
    headers.connection?.split(',').some((name) => name.trim().toLowerCase() === 'upgrade') === true;
  const wanted = named ? headers.upgrade?.trim() : undefined;
  return wanted === undefined || wanted === '' || wanted.toLowerCase() === 'h2c' ? undefined : wanted;
}
