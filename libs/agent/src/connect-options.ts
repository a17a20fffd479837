import { hostname } from 'node:os';
import { join } from 'node:path';
import { ArgumentError } from './agent-error.js';
import { stderrLogger, type Logger } from './logger.js';
import {
  aBoolean,
  aFunction,
  aNumber,
  anObject,
  aString,
  isObject,
  quote,
  shapeProblems,
  withMethods,
  type Shape,
} from './option-shapes.js';
import type { EngineEvent, Host } from '@bulwark/resilience';

export interface ConnectOptions {
  /** Default "default". */
  readonly namespace?: string;
  /** The service this process is part of. */
  readonly service: string;
  /** Unique within namespace and service at any one time. Default: host name and process id. */
  readonly instance?: string;
  /** For `callers` and `caller.LABEL`; zone and region are `bulwark.dev/zone` and `bulwark.dev/region`. */
  readonly labels?: Readonly<Record<string, string>>;
  /** "host:port[,host:port…]", tried in turn. May be absent where `bootstrap` gives policies: then they are all there is. */
  readonly controlPlane?: string;
  /** Directory that keeps the last snapshot; absent = nothing is kept. One agent a directory. */
  readonly stateDir?: string;
  /**
   * Policies for a start with no snapshot on disk and no control plane: a file, or the documents themselves
   * (apiVersion, kind, metadata, spec).
   */
  readonly bootstrap?: string | readonly object[];
  /**
   * A file that takes Bulwark out while it is there: its first line is a duration from its modification time ("30m";
   * empty = 10m; at most 24h), the rest the reason. Default: "bypass" in `stateDir`; neither = there is no such file.
   */
  readonly bypassFile?: string;
  /**
   * Whether the `Bulwark-…` headers of answers from this host count, for `fetch`, undici and gRPC. Those of other hosts are
   * taken away: a stranger must not say that its failures are none. Default: every host's count.
   */
  readonly believes?: (host: string) => boolean;
  readonly logger?: Logger;
  /** Clock, randomness and timers; for tests. */
  readonly host?: Host;
  /** How long `connect` waits for a control plane when nothing is on disk, milliseconds. Default 2,000. */
  readonly startWaitMs?: number;
  /** True: `connect` rejects with `RefusedError` when the control plane refuses this agent within `startWaitMs`. */
  readonly failOnRefusal?: boolean;
  /** Everything the engine has to tell. What it throws is counted and changes nothing. */
  readonly onEvent?: (event: EngineEvent) => void;
}

const SHAPES: Readonly<Record<keyof ConnectOptions, Shape>> = {
  namespace: aString,
  service: aString,
  instance: aString,
  labels: anObject,
  controlPlane: aString,
  stateDir: aString,
  bootstrap: {
    expected: 'the path of a file, or an array of policy documents',
    fits: (value) => typeof value === 'string' || Array.isArray(value),
  },
  bypassFile: aString,
  believes: aFunction,
  logger: withMethods('debug', 'info', 'warn', 'error'),
  host: withMethods('nowMs', 'random', 'after'),
  startWaitMs: aNumber,
  failOnRefusal: aBoolean,
  onEvent: aFunction,
};

export interface CompleteOptions {
  readonly namespace: string;
  readonly service: string;
  readonly instance: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly addresses: readonly string[];
  readonly stateDir: string | undefined;
  readonly bootstrap: string | readonly object[] | undefined;
  readonly bypassFile: string | undefined;
  readonly believes: (host: string) => boolean;
  readonly logger: Logger;
  readonly startWaitMs: number;
  readonly failOnRefusal: boolean;
}

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const DNS_NAME = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$/;
const INSTANCE = /^[A-Za-z0-9]([-A-Za-z0-9._:]{0,251}[A-Za-z0-9])?$/;
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9._]{0,61}[A-Za-z0-9])?)?$/;
const LABEL_NAME = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9._]{0,61}[A-Za-z0-9])?$/;
const MAX_LABELS = 64;

/** Fills defaults and checks everything; all problems come in one `ArgumentError`. */
export function completeOptions(options: ConnectOptions): CompleteOptions {
  const problems = connectProblems(options);
  if (problems.length > 0) throw new ArgumentError(problems);
  return Object.freeze(withDefaults(options));
}

/** Everything that is wrong with these options; empty = `connect` will take them. */
export function connectProblems(options: ConnectOptions): string[] {
  if (!isObject(options)) {
    return [
      `options ${quote(options)} must be an object with at least service, and controlPlane or bootstrap`,
    ];
  }
  const misshapen = shapeProblems(options, SHAPES);
  const wrong = new Set(misshapen.map(({ option }) => option));
  // What was said of an option already is not said once more, and nothing stumbles over it.
  const sound = Object.fromEntries(Object.entries(options).filter(([option]) => !wrong.has(option)));
  // Where a bootstrap was meant, a control plane may be absent.
  if (wrong.has('bootstrap')) sound['bootstrap'] = [];
  return [
    ...misshapen.map(({ problem }) => problem),
    ...contentProblems(sound as unknown as ConnectOptions)
      .filter(({ option }) => !wrong.has(option))
      .map(({ problem }) => problem),
  ];
}

interface OptionProblem {
  readonly option: keyof ConnectOptions;
  readonly problem: string;
}

function contentProblems(options: ConnectOptions): OptionProblem[] {
  const complete = withDefaults(options);
  const problems: OptionProblem[] = [
    ...nameProblems(complete),
    ...labelProblems(complete.labels).map((problem) => ({ option: 'labels' as const, problem })),
    ...addressProblems(complete.addresses, options).map((problem) => ({
      option: 'controlPlane' as const,
      problem,
    })),
  ];
  if (!(complete.startWaitMs >= 0 && complete.startWaitMs <= 60_000)) {
    const problem = `startWaitMs ${complete.startWaitMs} must be 0 to 60000`;
    problems.push({ option: 'startWaitMs', problem });
  }
  return problems;
}

function withDefaults(options: ConnectOptions): CompleteOptions {
  return {
    namespace: options.namespace ?? 'default',
    service: options.service,
    instance: options.instance ?? defaultInstance(),
    labels: Object.freeze({ ...options.labels }),
    addresses: splitAddresses(options.controlPlane),
    stateDir: options.stateDir,
    bootstrap: options.bootstrap,
    bypassFile: options.bypassFile ?? (options.stateDir && join(options.stateDir, 'bypass')),
    believes: options.believes ?? (() => true),
    logger: options.logger ?? stderrLogger,
    startWaitMs: options.startWaitMs ?? 2_000,
    failOnRefusal: options.failOnRefusal ?? false,
  };
}

function nameProblems(names: { namespace: string; service: string; instance: string }): OptionProblem[] {
  const problems: OptionProblem[] = [];
  if (!DNS_LABEL.test(names.namespace)) {
    const problem = `namespace ${quote(names.namespace)} must be 1 to 63 lower-case letters, digits and "-", beginning and ending with a letter or digit`;
    problems.push({ option: 'namespace', problem });
  }
  if (!DNS_NAME.test(names.service ?? '')) {
    const problem = `service ${quote(names.service)} must be a DNS name: lower-case letters, digits, "-" and "."`;
    problems.push({ option: 'service', problem });
  }
  if (!INSTANCE.test(names.instance)) {
    const problem = `instance ${quote(names.instance)} must be 1 to 253 letters, digits, ".", ":", "_" and "-", beginning and ending with a letter or digit`;
    problems.push({ option: 'instance', problem });
  }
  return problems;
}

function labelProblems(labels: Readonly<Record<string, string>>): string[] {
  const problems: string[] = [];
  const entries = Object.entries(labels);
  if (entries.length > MAX_LABELS)
    problems.push(`${entries.length} labels, at most ${MAX_LABELS} are allowed`);
  for (const [name, value] of entries.slice(0, MAX_LABELS)) {
    if (!LABEL_NAME.test(name))
      problems.push(`label name ${quote(name)} must look like "app" or "example.org/app"`);
    if (typeof value !== 'string' || !LABEL_VALUE.test(value)) {
      problems.push(`label ${name}=${quote(value)} must be at most 63 letters, digits, ".", "_" and "-"`);
    }
  }
  return problems;
}

function splitAddresses(controlPlane: string | undefined): string[] {
  return String(controlPlane ?? '')
    .split(',')
    .map((address) => address.trim())
    .filter((address) => address !== '');
}

function addressProblems(addresses: readonly string[], given: ConnectOptions): string[] {
  if (given.controlPlane === undefined && given.bootstrap !== undefined) return [];
  if (addresses.length === 0) {
    return [
      `controlPlane ${quote(given.controlPlane)} must be HOST:PORT[,HOST:PORT…], such as 127.0.0.1:9444`,
    ];
  }
  return addresses
    .filter((address) => !isHostPort(address))
    .map(
      (address) =>
        `controlPlane address ${quote(address)} must be HOST:PORT, such as 127.0.0.1:9444 or [::1]:9444`,
    );
}

/** "name:1", "10.0.0.1:65535" or "[::1]:9444"; no scheme, no path. */
export function isHostPort(address: string): boolean {
  const match = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?):(\d{1,5})$/.exec(address);
  const port = Number(match?.[3] ?? 0);
  return port >= 1 && port <= 65_535;
}

function defaultInstance(): string {
  const host = hostname()
    .replace(/[^-A-Za-z0-9.]/g, '-')
    .replace(/^[-.]+|[-.]+$/g, '');
  return `${host === '' ? 'host' : host}-${process.pid}`;
}
