import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { LogFormat, LogLevel } from '@bulwark/telemetry';
import { readSources, type Sources } from './option-sources.js';
import type { Flag } from './option-table.js';

/** Complete and checked; frozen for the life of the process. */
export interface ServerConfig {
  /** "file:DIR" or "etcd:URL[,URL…]". */
  readonly store: string;
  readonly http: Address;
  readonly grpc: Address;
  /** Where other replicas reach this one; absent = the address it listens on. */
  readonly advertiseGrpc: string | undefined;
  readonly id: string;
  readonly peers: readonly string[];
  /** "immediate" or a strategy's name. */
  readonly defaultRollout: string;
  /** Both addresses are loopback: nobody outside this machine reaches them. */
  readonly loopback: boolean;
  readonly maxAgents: number;
  /** Watches over HTTP that this replica serves at once. */
  readonly maxWatches: number;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
}

export interface Address {
  readonly host: string;
  /** 0 = any free one. */
  readonly port: number;
}

export type ConfigResult =
  | { readonly kind: 'config'; readonly config: ServerConfig }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly problems: readonly string[] };

const NAME = /^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/;

/** Parses, defaults and validates in one go; every problem is told at once. */
export function readConfig(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  readFile: (path: string) => string = (path) => readFileSync(path, 'utf8'),
): ConfigResult {
  const sources = readSources(argv, env, readFile);
  if (sources.help) return { kind: 'help' };
  const read = new Reader(sources);
  const http = read.address('http', { host: '127.0.0.1', port: 9443 });
  const grpc = read.address('grpc', { host: '127.0.0.1', port: 9444 });
  const loopback = isLoopback(http.host) && isLoopback(grpc.host);
  if (http.port !== 0 && http.port === grpc.port && http.host === grpc.host) {
    read.problem(`--http and --grpc are both ${http.host}:${http.port}; give them two ports`);
  }
  const config: ServerConfig = {
    store: read.store(),
    http,
    grpc,
    advertiseGrpc: read.optionalAddress('advertise-grpc'),
    id: read.name('id', defaultId()),
    peers: read.addresses('peer'),
    defaultRollout: read.name('default-rollout', loopback ? 'immediate' : 'standard'),
    loopback,
    maxAgents: read.integer('max-agents', { absent: 10_000, min: 1, max: 100_000 }),
    maxWatches: read.integer('max-watches', { absent: 1_000, min: 1, max: 100_000 }),
    logLevel: read.oneOf('log-level', ['debug', 'info', 'warn', 'error'], 'info'),
    logFormat: read.oneOf('log-format', ['json', 'text', 'auto'], 'auto'),
  };
  if (!read.switch('insecure-listen') && !loopback) {
    read.problem(
      `${[http, grpc]
        .filter(({ host }) => !isLoopback(host))
        .map(formatAddress)
        .join(' and ')} can be reached from ` +
        'other machines, and this server has no TLS: listen on 127.0.0.1, or say --insecure-listen to accept that ' +
        'anyone who reaches the port may read and change everything',
    );
  }
  const everywhere = config.advertiseGrpc === undefined ? grpc : parseAddress(config.advertiseGrpc);
  if (config.store.startsWith('etcd:') && everywhere !== undefined && isEveryAddress(everywhere.host)) {
    read.problem(
      `other replicas would be told to reach this one at ${formatAddress(everywhere)}, where each of them finds itself: ` +
        'say where they reach it with --advertise-grpc HOST:PORT',
    );
  }
  const problems = [...sources.problems, ...read.problems];
  return problems.length > 0
    ? { kind: 'wrong', problems }
    : { kind: 'config', config: Object.freeze(config) };
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Listening there is listening on all addresses; connecting there is connecting to oneself. */
function isEveryAddress(host: string): boolean {
  return host === '0.0.0.0' || /^[0:]+$/.test(host);
}

export function formatAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

export function parseAddress(text: string): Address | undefined {
  const [, v6, v4, digits] = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = v6 ?? v4;
  const port = Number(digits);
  return host === undefined || port > 65_535 ? undefined : { host, port };
}

function defaultId(): string {
  const host = hostname()
    .toLowerCase()
    .replaceAll(/[^-a-z0-9]/g, '-')
    .replace(/^-+/, '')
    .slice(0, 40);
  return `${host || 'replica'}-${randomBytes(2).toString('hex')}`;
}

class Reader {
  readonly problems: string[] = [];

  constructor(private readonly sources: Sources) {}

  problem(text: string): void {
    this.problems.push(text);
  }

  store(): string {
    const text = this.text('store') ?? 'file:.bulwark';
    if (!/^(file:.+|etcd:.+)$/s.test(text)) {
      this.wrong('store', text, 'file:DIR or etcd:URL[,URL…], such as etcd:http://127.0.0.1:2379');
    }
    return text;
  }

  address(flag: Flag, absent: Address): Address {
    const text = this.text(flag);
    if (text === undefined) return absent;
    const address = parseAddress(text);
    if (address === undefined) this.wrong(flag, text, 'HOST:PORT with a port from 0 to 65535');
    return address ?? absent;
  }

  optionalAddress(flag: Flag): string | undefined {
    const text = this.text(flag);
    return text === undefined ? undefined : formatAddress(this.address(flag, { host: '', port: 0 }));
  }

  addresses(flag: Flag): readonly string[] {
    const values = this.sources.given.get(flag)?.values ?? [];
    for (const text of values) {
      if (!parseAddress(text)) this.wrong(flag, text, 'HOST:PORT with a port from 1 to 65535');
    }
    return values;
  }

  name(flag: Flag, absent: string): string {
    const text = this.text(flag) ?? absent;
    if (!NAME.test(text)) this.wrong(flag, text, 'at most 63 of a-z, 0-9, "-" and ".", not at either end');
    return text;
  }

  integer(flag: Flag, range: { absent: number; min: number; max: number }): number {
    const text = this.text(flag);
    if (text === undefined) return range.absent;
    const value = /^\d{1,9}$/.test(text) ? Number(text) : NaN;
    if (!(value >= range.min && value <= range.max)) {
      this.wrong(flag, text, `a whole number from ${range.min} to ${range.max}`);
    }
    return value;
  }

  oneOf<T extends string>(flag: Flag, allowed: readonly T[], absent: T): T {
    const text = this.text(flag);
    if (text === undefined) return absent;
    const value = allowed.find((one) => one === text);
    if (value === undefined) this.wrong(flag, text, `one of ${allowed.join(', ')}`);
    return value ?? absent;
  }

  switch(flag: Flag): boolean {
    return this.oneOf(flag, ['true', 'false'], 'false') === 'true';
  }

  private text(flag: Flag): string | undefined {
    return this.sources.given.get(flag)?.values.at(-1);
  }

  private wrong(flag: Flag, got: string, wanted: string): void {
    const from = this.sources.given.get(flag)?.from ?? `--${flag}`;
    this.problem(`${from}: "${got}" is not ${wanted}`);
  }
}
