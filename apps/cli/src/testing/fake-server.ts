import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { findResource, tableFor, type ObjectOf, type Plural } from '@bulwark/views';
import type { ApiObject } from '../client/api-client.js';

/** What a request was, for tests that count writes. */
export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly headers: IncomingMessage['headers'];
}

/** An answer instead of the usual one. */
export interface Answer {
  readonly code: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Watcher {
  readonly plural: string;
  readonly table: boolean;
  readonly response: ServerResponse;
}

/** As much of the API as the command needs, in memory, so that tests decide what the server says. */
export class FakeServer {
  readonly url: string;
  readonly seen: Seen[] = [];
  now = Date.parse('2026-03-01T12:00:00Z');
  /** Asked before each request is carried out. */
  intercept: (seen: Seen) => Answer | undefined = () => undefined;
  private readonly objects = new Map<string, ApiObject>();
  private readonly watchers = new Set<Watcher>();
  private revision = 100;

  private constructor(private readonly server: Server) {
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('request', (request, response) => void this.serve(request, response));
  }

  static async start(): Promise<FakeServer> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new FakeServer(server);
  }

  /** The requests that would change something. */
  get writes(): readonly Seen[] {
    return this.seen.filter(({ method, query }) => method !== 'GET' && query['dryRun'] === undefined);
  }

  get openWatches(): number {
    return this.watchers.size;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  object(plural: Plural, name: string, namespace = 'shop'): ApiObject | undefined {
    return this.objects.get(`${plural}/${namespace}/${name}`);
  }

  put(plural: Plural, object: object): ApiObject {
    const given = object as ApiObject;
    const { namespace = 'shop', name } = given.metadata;
    const key = `${plural}/${namespace}/${name}`;
    const type = this.objects.has(key) ? 'MODIFIED' : 'ADDED';
    this.revision += 1;
    const metadata = { ...given.metadata, namespace, resourceVersion: String(this.revision) };
    const stored = { ...given, metadata };
    this.objects.set(key, stored);
    this.publish(plural, type, stored);
    return stored;
  }

  remove(plural: Plural, name: string, namespace = 'shop'): void {
    const key = `${plural}/${namespace}/${name}`;
    const object = this.objects.get(key);
    if (object === undefined) return;
    this.objects.delete(key);
    this.revision += 1;
    const metadata = { ...object.metadata, resourceVersion: String(this.revision) };
    this.publish(plural, 'DELETED', { ...object, metadata });
  }

  /** Ends every watch, as a server does after half an hour; `error` first, if given. */
  endWatches(error?: object): void {
    for (const { response } of this.watchers) {
      if (error !== undefined) response.write(`${JSON.stringify({ type: 'ERROR', object: error })}\n`);
      response.end();
    }
    this.watchers.clear();
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const url = new URL(request.url ?? '/', 'http://fake');
    const seen: Seen = {
      method: request.method ?? '',
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      body: text === '' ? undefined : (JSON.parse(text) as unknown),
      headers: request.headers,
    };
    this.seen.push(seen);
    const special = this.intercept(seen);
    if (special !== undefined) return send(response, special);
    const table = String(request.headers.accept).includes('as=Table');
    if (seen.query['watch'] !== undefined) return this.watch(seen, { table, response });
    send(response, this.answer(seen, table));
  }

  private answer(seen: Seen, table: boolean): Answer {
    const match =
      /^\/apis\/bulwark\.dev\/v1(?:\/namespaces\/([^/]+))?\/([a-z]+)(?:\/([^/]+))?(?:\/force)?$/.exec(
        seen.path,
      );
    const [, namespace, word = '', name] = match ?? [];
    const plural = findResource(word)?.plural;
    if (plural === undefined) return status(404, 'NotFound', `${seen.path} not found`);
    if (seen.method === 'POST') return this.create(plural, seen, namespace);
    if (name === undefined) return this.list(plural, { seen, namespace, table });
    const object = this.object(plural, name, namespace);
    if (object === undefined) return status(404, 'NotFound', `${plural}.bulwark.dev "${name}" not found`);
    if (seen.method === 'GET')
      return { code: 200, body: table ? this.table(plural, [object], seen) : object };
    if (seen.method === 'DELETE') {
      if (seen.query['dryRun'] === undefined) this.remove(plural, name, namespace);
      return { code: 200, body: { kind: 'Status', status: 'Success' } };
    }
    return seen.method === 'PATCH' ? this.patch(plural, object, seen) : { code: 200, body: object };
  }

  private list(
    plural: Plural,
    {
      seen,
      namespace,
      table,
    }: { readonly seen: Seen; readonly namespace: string | undefined; readonly table: boolean },
  ): Answer {
    const name = /^metadata\.name=(.*)$/.exec(seen.query['fieldSelector'] ?? '')?.[1];
    const items = [...this.objects].flatMap(([key, object]) => {
      const there = namespace === undefined || object.metadata.namespace === namespace;
      return key.startsWith(`${plural}/`) && there && (name ?? object.metadata.name) === object.metadata.name
        ? [object]
        : [];
    });
    if (table) return { code: 200, body: this.table(plural, items, seen) };
    return { code: 200, body: { kind: 'List', metadata: { resourceVersion: String(this.revision) }, items } };
  }

  private table(plural: Plural, objects: readonly ApiObject[], seen: Seen): unknown {
    const includeObject = seen.query['includeObject'] === 'Object' ? 'Object' : 'Metadata';
    const options = { now: this.now, resourceVersion: String(this.revision), includeObject } as const;
    return tableFor(plural, objects as unknown as readonly ObjectOf[Plural][], options);
  }

  private create(plural: Plural, { body, query }: Seen, namespace: string | undefined): Answer {
    const given = body as ApiObject;
    const object = {
      ...given,
      metadata: { ...given.metadata, namespace: namespace ?? 'shop', generation: 1 },
    };
    return { code: 201, body: query['dryRun'] === undefined ? this.put(plural, object) : object };
  }

  private patch(plural: Plural, object: ApiObject, { body, query }: Seen): Answer {
    const wanted = (body as ApiObject).metadata.resourceVersion;
    if (wanted !== undefined && wanted !== object.metadata.resourceVersion) {
      return status(
        409,
        'Conflict',
        `Operation cannot be fulfilled on "${object.metadata.name}": it has been modified`,
      );
    }
    const merged = mergePatch(object, body) as ApiObject;
    return { code: 200, body: query['dryRun'] === undefined ? this.put(plural, merged) : merged };
  }

  private watch(
    seen: Seen,
    { table, response }: { readonly table: boolean; readonly response: ServerResponse },
  ): void {
    const plural = seen.path.split('/').at(-1) ?? '';
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    const watcher = { plural, table, response };
    this.watchers.add(watcher);
    response.on('close', () => this.watchers.delete(watcher));
  }

  private publish(plural: Plural, type: string, object: ApiObject): void {
    for (const watcher of this.watchers) {
      if (watcher.plural !== plural) continue;
      const shown = watcher.table
        ? tableFor(plural, [object as unknown as ObjectOf[Plural]], { now: this.now, columns: false })
        : object;
      watcher.response.write(`${JSON.stringify({ type, object: shown })}\n`);
    }
  }
}

/** RFC 7396. */
function mergePatch(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const base = typeof target === 'object' && target !== null && !Array.isArray(target) ? target : {};
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else merged[key] = mergePatch(merged[key], value);
  }
  return merged;
}

export function status(code: number, reason: string, message: string, details?: object): Answer {
  return {
    code,
    body: { kind: 'Status', status: 'Failure', code, reason, message, ...(details ? { details } : {}) },
  };
}

function send(response: ServerResponse, { code, body, headers = {} }: Answer): void {
  response.writeHead(code, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}
