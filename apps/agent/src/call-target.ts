import type { IncomingMessage } from 'node:http';

/** Where one proxied call goes. */
export interface CallTarget {
  /** What policies know it by: the host name as the caller wrote it, lower case, without port and final dot. */
  readonly service: string;
  /** `--upstream` says where it is; else its name was taken for an address. */
  readonly mapped: boolean;
  readonly secure: boolean;
  readonly host: string;
  readonly port: number;
  /** For the upstream's Host header: as the caller wrote it. */
  readonly authority: string;
  /** Path and query, as the caller wrote them. */
  readonly path: string;
  /** Stands before the path at the upstream; "" or "/a/b". */
  readonly basePath: string;
  /** Names the answer; scheme, authority, path and query. */
  readonly url: string;
  /** "GET /v1/recs". */
  readonly operation: string;
}

export interface TargetRules {
  readonly upstreams: ReadonlyMap<string, URL>;
  /** "host:port" texts that mean this proxy itself. */
  readonly isSelf: (host: string, port: number) => boolean;
}

export type ResolvedTarget = { readonly kind: 'target'; readonly target: CallTarget } | Refused;

/** `word` names the reason in the problem. */
export interface Refused {
  readonly kind: 'refused';
  readonly status: number;
  readonly word: string;
  readonly detail: string;
}

/** From absolute-form (`GET http://name/path`) or, as a plain request, from the Host header. */
export function resolveTarget(
  request: Pick<IncomingMessage, 'url' | 'headers' | 'method'>,
  rules: TargetRules,
): ResolvedTarget {
  const raw = request.url ?? '/';
  const absolute = /^https?:\/\//i.test(raw);
  const scheme = absolute ? undefined : /^([a-z][a-z0-9+.-]*):\/\//i.exec(raw)?.[1];
  if (scheme !== undefined) {
    return refused(400, 'bad-target', `The sidecar calls http and https URLs only, not ${scheme}.`);
  }
  const authority = absolute ? '' : (request.headers.host ?? '');
  if (!absolute && authority === '') {
    return refused(400, 'no-target', 'Name the service in the URL (as for a proxy) or in the Host header.');
  }
  if (/[\s/\\?#@]/.test(authority)) {
    // As a part of a URL it would mean something else than it says to the upstream.
    return refused(
      400,
      'bad-host',
      `The Host header ${JSON.stringify(authority)} is not a name with a port.`,
    );
  }
  const url = URL.parse(absolute ? raw : `http://${authority}${raw.startsWith('/') ? raw : '/'}`);
  if (url === null || url.hostname === '' || url.username !== '' || url.password !== '') {
    return refused(400, 'bad-target', 'The target is not a URL that can be called.');
  }
  // A final dot says that a name is complete; it is the same name.
  const service = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  const mapped = rules.upstreams.get(service);
  const place = mapped ?? url;
  const secure = place.protocol === 'https:';
  const host = place.hostname.replace(/^\[|\]$/g, '');
  const port = place.port === '' ? (secure ? 443 : 80) : Number(place.port);
  if (rules.isSelf(host.replace(/\.$/, ''), port)) {
    const detail = `${url.host} is this sidecar itself. Name the service that is to be called.`;
    return refused(421, 'loop', detail);
  }
  const path = absolute ? `${url.pathname}${url.search}` : raw;
  const target: CallTarget = {
    service,
    mapped: mapped !== undefined,
    secure,
    host,
    port,
    authority: absolute ? url.host : authority,
    path,
    basePath: mapped === undefined ? '' : mapped.pathname.replace(/\/+$/, ''),
    url: `${url.protocol}//${url.host}${path}`,
    operation: `${request.method ?? 'GET'} ${url.pathname}`,
  };
  return { kind: 'target', target };
}

function refused(status: number, word: string, detail: string): Refused {
  return { kind: 'refused', status, word, detail };
}
