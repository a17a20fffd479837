import { isHostPort } from '@bulwark/agent';
import { parseArgs } from 'node:util';
import { isLoopback } from './loopback.js';
import { sharedPorts } from './shared-ports.js';
import { LOOPBACK_PEERS, parseTrustedPeers, type TrustedPeers } from './trusted-peers.js';

export interface HostPort {
  readonly host: string;
  /** 0 = any free one. */
  readonly port: number;
}

/** The inbound side: calls to the service. */
export interface InboundOptions {
  /** Where callers reach the service. */
  readonly listen: HostPort;
  /** The service itself; http. Its path stands before that of each call. */
  readonly app: URL;
}

export interface SidecarOptions {
  readonly namespace: string;
  readonly service: string;
  readonly instance: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly controlPlane: string;
  readonly listen: HostPort;
  readonly admin: HostPort;
  /** Undefined = there is no inbound side. */
  readonly inbound: InboundOptions | undefined;
  /** Whose marks are believed: callers' on the inbound side, upstreams' on the outbound side. */
  readonly trustedPeers: TrustedPeers;
  /** Service name → where it is. A name that is not here is dialled as given. */
  readonly upstreams: ReadonlyMap<string, URL>;
  readonly stateDir: string | undefined;
  readonly bootstrap: string | undefined;
  /** Undefined = "bypass" in the state directory, if there is one. */
  readonly bypassFile: string | undefined;
  /** How long accepted requests may take after SIGTERM, milliseconds. */
  readonly drainMs: number;
  readonly allowNonLoopback: boolean;
}

export type ParsedOptions =
  | { readonly kind: 'run'; readonly options: SidecarOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly problems: readonly string[] };

export const USAGE = `Usage: bulwark agent --service NAME [flags]

A sidecar: an HTTP proxy that guards its service's calls by the policies of the control plane, and, with --inbound, stands
before the service too, so that deadlines and "retries are used up" travel through it.
Try: curl -x http://127.0.0.1:15001 http://NAME/path

Flags (each also as BULWARK_…, such as BULWARK_CONTROL_PLANE; a flag wins):
  --service NAME            the service this agent belongs to (required)
  --namespace NS            its namespace (default)
  --instance ID             unique in namespace and service (host name and process id)
  --labels k=v,…            labels of this agent; bulwark.dev/zone and bulwark.dev/region place it
  --control-plane H:P[,…]   gRPC addresses of the control plane (127.0.0.1:9444)
  --listen HOST:PORT        where the proxy listens (127.0.0.1:15001)
  --admin HOST:PORT         /healthz, /readyz, /metrics, /state (127.0.0.1:15000)
  --upstream NAME=URL       where a service is; may be repeated. Its path stands before that of each call.
                            Other names are dialled as given
  --inbound HOST:PORT       where callers reach the service; needs --app (off)
  --app URL                 the service itself, such as http://127.0.0.1:8080; needs --inbound
  --trusted-peers CIDR[,…]  whose Bulwark-… headers are believed: callers of --inbound, and upstreams
                            (127.0.0.0/8,::1/128); "none" = nobody's
  --state DIR               keeps the last policies here, for a start without the control plane
  --bootstrap FILE          policies for a start with neither state nor control plane
  --bypass-file FILE        while this file is there, calls pass unguarded (DIR/bypass of --state). First line: for
                            how long, such as 30m; then: why
  --drain-timeout DURATION  how long accepted requests may take after SIGTERM (10s)
  --allow-non-loopback      needed for --listen or --admin beyond loopback: nothing there asks who calls
  --help                    this text
`;

const FLAGS = {
  service: { type: 'string' },
  namespace: { type: 'string' },
  instance: { type: 'string' },
  labels: { type: 'string' },
  'control-plane': { type: 'string' },
  listen: { type: 'string' },
  admin: { type: 'string' },
  upstream: { type: 'string', multiple: true },
  state: { type: 'string' },
  bootstrap: { type: 'string' },
  inbound: { type: 'string' },
  app: { type: 'string' },
  'trusted-peers': { type: 'string' },
  'bypass-file': { type: 'string' },
  'drain-timeout': { type: 'string' },
  'allow-non-loopback': { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

type FlagName = keyof typeof FLAGS;

/** Reads flags, then the environment, then defaults. All problems come together. */
export function parseSidecarOptions(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): ParsedOptions {
  const problems: string[] = [];
  const values = readFlags(argv, problems);
  if (values.get('help') !== undefined) return { kind: 'help' };
  const text = (name: FlagName): string | undefined => {
    const flag = values.get(name);
    return (Array.isArray(flag) ? flag.join(',') : flag) ?? (env[variable(name)] || undefined);
  };
  const service = text('service');
  if (service === undefined) problems.push('--service NAME is required (or BULWARK_SERVICE)');
  const listen = parseHostPort('listen', text('listen') ?? '127.0.0.1:15001', problems);
  const admin = parseHostPort('admin', text('admin') ?? '127.0.0.1:15000', problems);
  const options: SidecarOptions = {
    service: service ?? '',
    namespace: text('namespace') ?? 'default',
    instance: text('instance'),
    labels: parseLabels(text('labels'), problems),
    controlPlane: text('control-plane') ?? '127.0.0.1:9444',
    listen,
    admin,
    inbound: parseInbound({ inbound: text('inbound'), app: text('app'), own: { listen, admin } }, problems),
    trustedPeers: parseTrustedPeers(text('trusted-peers') ?? LOOPBACK_PEERS, problems),
    upstreams: parseUpstreams(text('upstream'), problems),
    stateDir: text('state'),
    bootstrap: text('bootstrap'),
    bypassFile: text('bypass-file'),
    drainMs: parseSeconds(text('drain-timeout') ?? '10s', problems),
    allowNonLoopback: isTrue(text('allow-non-loopback'), problems),
  };
  const { inbound } = options;
  problems.push(...sharedPorts({ listen, admin, ...(inbound && { inbound: inbound.listen }) }));
  if (!options.allowNonLoopback) {
    refuseBeyondLoopback('--listen', options.listen, problems);
    refuseBeyondLoopback('--admin', options.admin, problems);
  }
  return problems.length > 0 ? { kind: 'wrong', problems } : { kind: 'run', options };
}

function readFlags(argv: readonly string[], problems: string[]): Map<FlagName, string | string[]> {
  const { tokens } = parseArgs({
    args: [...argv],
    options: FLAGS,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const values = new Map<FlagName, string | string[]>();
  for (const token of tokens) {
    if (token.kind === 'positional') problems.push(`unexpected argument "${token.value}"`);
    if (token.kind !== 'option') continue;
    if (!isFlag(token.name)) {
      problems.push(`unknown flag ${token.rawName}${suggestion(token.name)}`);
      continue;
    }
    const wantsValue = FLAGS[token.name].type === 'string';
    if (wantsValue && (token.value === undefined || (!token.inlineValue && token.value.startsWith('--')))) {
      problems.push(`${token.rawName} needs a value`);
    } else if (token.name === 'upstream') {
      values.set('upstream', [...(values.get('upstream') ?? []), token.value ?? '']);
    } else {
      values.set(token.name, token.value ?? 'true');
    }
  }
  return values;
}

function isFlag(name: string): name is FlagName {
  return Object.hasOwn(FLAGS, name);
}

/** The one flag that begins alike, when there is one. */
function suggestion(name: string): string {
  const near = Object.keys(FLAGS).filter((flag) => flag.startsWith(name.slice(0, 3)));
  return near.length === 1 ? `, did you mean --${near[0]}?` : '';
}

function variable(name: FlagName): string {
  return `BULWARK_${name.toUpperCase().replaceAll('-', '_')}`;
}

function parseLabels(text: string | undefined, problems: string[]): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const pair of (text ?? '').split(',').filter((part) => part.trim() !== '')) {
    const at = pair.indexOf('=');
    const name = pair.slice(0, at).trim();
    if (at <= 0) problems.push(`--labels "${pair}" must be NAME=VALUE`);
    else if (Object.hasOwn(labels, name)) problems.push(`--labels ${name} is given twice`);
    else labels[name] = pair.slice(at + 1).trim();
  }
  return labels;
}

/** Both flags or neither. The service must not be the sidecar: that would be a loop. */
function parseInbound(
  given: { inbound: string | undefined; app: string | undefined; own: Record<'listen' | 'admin', HostPort> },
  problems: string[],
): InboundOptions | undefined {
  const { inbound, app: appText, own } = given;
  const listen = inbound === undefined ? undefined : parseHostPort('inbound', inbound, problems);
  const app = appText === undefined ? undefined : parseApp(appText, problems);
  if (inbound !== undefined && appText === undefined) {
    problems.push('--inbound needs --app URL: the service that is behind it');
  }
  if (inbound === undefined && appText !== undefined) {
    problems.push('--app needs --inbound HOST:PORT: where callers reach the service');
  }
  if (listen === undefined || app === undefined) return undefined;
  for (const [flag, place] of Object.entries({ ...own, inbound: listen })) {
    if (isSamePlace(app, place)) {
      problems.push(
        `--app ${appText} is --${flag} of this sidecar itself: give the service a port of its own`,
      );
    }
  }
  return { listen, app };
}

function parseApp(text: string, problems: string[]): URL | undefined {
  const url = URL.parse(text);
  if (url === null || url.protocol !== 'http:') {
    problems.push(`--app "${text}" must be an http URL, such as http://127.0.0.1:8080`);
  } else if (url.search !== '' || url.hash !== '' || url.username !== '') {
    problems.push(`--app "${text}": the URL must be scheme, host, port and a path at most`);
  } else {
    return url;
  }
  return undefined;
}

function isSamePlace(url: URL, { host, port }: HostPort): boolean {
  const name = url.hostname.replace(/^\[|\]$/g, '');
  const every = host === '0.0.0.0' || host === '::';
  const same = name === host || (isLoopback(name) && (every || isLoopback(host)));
  return port !== 0 && port === Number(url.port || '80') && same;
}

function parseHostPort(flag: 'listen' | 'admin' | 'inbound', text: string, problems: string[]): HostPort {
  const at = text.lastIndexOf(':');
  const port = Number(text.slice(at + 1));
  if (!isHostPort(text) && !(at > 0 && text.slice(at + 1) === '0')) {
    problems.push(`--${flag} "${text}" must be HOST:PORT, such as 127.0.0.1:15001, with a port up to 65535`);
    // No place, so that nothing more is said of it.
    return { host: '', port: 0 };
  }
  return { host: text.slice(0, at).replace(/^\[|\]$/g, ''), port };
}

function refuseBeyondLoopback(flag: '--listen' | '--admin', { host }: HostPort, problems: string[]): void {
  if (host === '' || isLoopback(host)) return;
  problems.push(
    `${flag} ${host} is not a loopback address: anyone who reaches it could use it, there is no authentication. Say --allow-non-loopback if that is meant`,
  );
}

function parseUpstreams(text: string | undefined, problems: string[]): Map<string, URL> {
  const upstreams = new Map<string, URL>();
  for (const pair of (text ?? '').split(',').filter((part) => part.trim() !== '')) {
    const at = pair.indexOf('=');
    const name = pair.slice(0, at).trim().toLowerCase();
    const url = URL.parse(pair.slice(at + 1).trim());
    if (at <= 0 || url === null || !['http:', 'https:'].includes(url.protocol)) {
      problems.push(`--upstream "${pair}" must be NAME=URL, such as fraud-api=http://10.0.0.7:8080`);
    } else if (url.search !== '' || url.hash !== '' || url.username !== '') {
      problems.push(`--upstream "${pair}": the URL must be scheme, host, port and a path at most`);
    } else if (upstreams.has(name)) {
      problems.push(`--upstream ${name} is given twice`);
    } else {
      upstreams.set(name, url);
    }
  }
  return upstreams;
}

const DRAIN_MAX_MS = 24 * 3_600_000;

function parseSeconds(text: string, problems: string[]): number {
  const match = /^(\d{1,9})(ms|s|m|h)$/.exec(text);
  const unit = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }[match?.[2] ?? ''] ?? NaN;
  const ms = Number(match?.[1]) * unit;
  if (ms <= DRAIN_MAX_MS) return ms;
  problems.push(`--drain-timeout "${text}" must be a duration such as 10s or 500ms, from 0s to 24h`);
  return 0;
}

function isTrue(text: string | undefined, problems: string[]): boolean {
  if (text !== undefined && text !== 'true' && text !== 'false') {
    problems.push(`--allow-non-loopback "${text}" must be true or false`);
  }
  return text === 'true';
}
