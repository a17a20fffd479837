import type { IncomingMessage } from 'node:http';
import { API_PATH, type Plural } from '@bulwark/views';
import { CommandError } from '../command-error.js';
import type { Io } from '../io.js';
import { Connection } from './connection.js';
import { apiError, ApiError, statusIn } from './status.js';
import { delay } from './delay.js';

/** What every object has, as far as this program needs to know. */
export interface ApiObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly resourceVersion?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

export interface ObjectList {
  readonly items: readonly ApiObject[];
  readonly metadata: { readonly resourceVersion?: string; readonly continue?: string };
}

/** Where objects are: one namespace, or (undefined) all. */
export interface Place {
  readonly plural: Plural;
  readonly namespace: string | undefined;
  readonly name?: string;
  /** "force": a part of the object with a URL of its own. */
  readonly part?: string;
}

export type Query = Readonly<Record<string, string | undefined>>;

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly query?: Query;
  readonly accept?: string;
  readonly contentType?: string;
  readonly body?: unknown;
}

export interface OpenOptions {
  readonly idempotencyKey?: string;
  /** Absent = Ctrl-C only. */
  readonly signal?: AbortSignal;
  /** Longest silence, in milliseconds. Absent = the client's. */
  readonly timeoutMs?: number;
}

export const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
const ANSWER_MS = 30_000;
/** Whoever waits this long for the head of an answer is told what for. */
const HINT_MS = 3_000;
const BUSY_RETRIES = 3;
const LONGEST_WAIT_S = 10;

export function pathOf({ plural, namespace, name, part }: Place, query: Query = {}): string {
  const where = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  const object = name === undefined ? '' : `/${encodeURIComponent(name)}`;
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value !== undefined) params.set(key, value);
  const search = params.size === 0 ? '' : `?${params.toString()}`;
  return `${API_PATH}${where}/${plural}${object}${part === undefined ? '' : `/${part}`}${search}`;
}

/** The server's API. Warnings of answers go to stderr, each text once a run. */
export class ApiClient {
  readonly connection: Connection;
  private readonly warned = new Set<string>();
  private readonly timeoutMs: number;
  private hinted = false;

  /** `timeoutMs`: longest silence of the server. Absent = 30 s. */
  constructor(
    server: string,
    private readonly io: Io,
    { timeoutMs = ANSWER_MS }: { readonly timeoutMs?: number } = {},
  ) {
    this.connection = new Connection(server);
    this.timeoutMs = timeoutMs;
  }

  /** @throws ApiError when the server says no; ConnectionError when it cannot be asked */
  async call(place: Place, call: Call): Promise<unknown> {
    return this.json(pathOf(place, call.query), call);
  }

  async list(place: Place, query: Query = {}): Promise<ObjectList> {
    const list = (await this.call(place, { method: 'GET', query })) as Partial<ObjectList> | undefined;
    if (!Array.isArray(list?.items)) throw notBulwark(this.connection.url);
    return { metadata: {}, ...list, items: list.items };
  }

  async get(place: Place): Promise<ApiObject> {
    return (await this.call(place, { method: 'GET' })) as ApiObject;
  }

  /** Undefined = there is none. */
  async find(place: Place): Promise<ApiObject | undefined> {
    try {
      return await this.get(place);
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return undefined;
      throw error;
    }
  }

  async json(path: string, call: Call): Promise<unknown> {
    // The same key on every try: a write that was made, but whose answer was lost, is not made again.
    const key = call.method === 'GET' ? undefined : crypto.randomUUID();
    for (let tries = 0; ; tries += 1) {
      const response = await this.open(path, call, key === undefined ? {} : { idempotencyKey: key });
      const body = await text(response, (error) => this.connection.failure(error));
      const code = response.statusCode ?? 0;
      if (code >= 200 && code < 300) return this.parse(body);
      const waitSeconds = Number(response.headers['retry-after'] ?? Number.NaN);
      const busy = (code === 429 || code === 503) && waitSeconds >= 0 && tries < BUSY_RETRIES;
      if (!busy) throw refusal(this.connection.url, code, body);
      await delay(Math.min(waitSeconds, LONGEST_WAIT_S) * 1_000, this.io.interrupted);
    }
  }

  /** The answer's head, whatever its status. */
  async open(path: string, call: Call, options: OpenOptions = {}): Promise<IncomingMessage> {
    const { idempotencyKey } = options;
    const hint = setTimeout(() => this.hint(), HINT_MS);
    const answer = this.connection.open({
      method: call.method,
      path,
      headers: {
        accept: call.accept ?? 'application/json',
        'user-agent': 'bulwark-cli',
        ...(call.body === undefined ? {} : { 'content-type': call.contentType ?? 'application/json' }),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
      timeoutMs: options.timeoutMs ?? this.timeoutMs,
      signal: options.signal ?? this.io.interrupted,
    });
    const response = await answer.finally(() => clearTimeout(hint));
    this.warn(response);
    return response;
  }

  close(): void {
    this.connection.close();
  }

  /** Once a run. */
  private hint(): void {
    if (this.hinted) return;
    this.hinted = true;
    this.io.err(`still waiting for ${this.connection.url} …\n`);
  }

  private parse(body: string): unknown {
    if (body === '') return undefined;
    try {
      return JSON.parse(body) as unknown;
    } catch (error) {
      throw notBulwark(this.connection.url, error);
    }
  }

  private warn(response: IncomingMessage): void {
    for (const header of response.headersDistinct['warning'] ?? []) {
      for (const warning of warningTexts(header)) {
        if (this.warned.has(warning)) continue;
        this.warned.add(warning);
        this.io.err(`Warning: ${warning}\n`);
      }
    }
  }
}

/** What other programs say to paths they do not know; proxies before a Bulwark server say other things. */
const STRANGERS_CODES: ReadonlySet<number> = new Set([404, 405, 501]);

/** The error of an answer that was not 2xx. */
export function refusal(url: string, code: number, body: string): CommandError {
  const strange = STRANGERS_CODES.has(code) || (code >= 300 && code < 400);
  return strange && statusIn(body) === undefined ? notBulwark(url) : apiError(code, body);
}

/** Something listens there and answers, and it speaks of other things. */
export function notBulwark(url: string, cause?: unknown): CommandError {
  return new CommandError(`error: ${url} does not look like a Bulwark API`, {
    hint: 'Is it the address of another program? Set the right one with --server URL, or BULWARK_SERVER.',
    cause,
  });
}

/** RFC 7234 §5.5: `299 - "text", 299 - "text"`. */
export function warningTexts(header: string): string[] {
  return [...header.matchAll(/\b\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)].map((match) =>
    (match[1] ?? '').replace(/\\(.)/g, '$1'),
  );
}

export async function text(response: IncomingMessage, failure: (error: unknown) => Error): Promise<string> {
  response.setEncoding('utf8');
  let body = '';
  try {
    for await (const chunk of response) body += String(chunk);
  } catch (error) {
    throw failure(error);
  }
  return body;
}
