import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  ApiError,
  badRequest,
  expired,
  methodNotAllowed,
  notFound,
  tooLargeVersion,
  tooManyWatches,
} from '../errors/api-error.js';
import { isMap, parseJson } from '../objects/json-value.js';
import type { ObjectWrites, Place, Written } from '../objects/object-writes.js';
import { parsePatch } from '../objects/patch.js';
import type { ApiObject } from '../objects/api-object.js';
import { FrameCache } from './frame-cache.js';
import { asList, asTable, negotiate, type Representation } from './representation.js';
import {
  dryRun,
  includeObject,
  listOptions,
  writeOptions,
  type ListOptions,
  type Query,
} from './request-options.js';
import type { ServedKind } from './served-kind.js';
import { WatchResponse } from './watch-response.js';

export type ApiRequest = FastifyRequest<{
  Params: { namespace?: string; plural?: string; name?: string };
  Querystring: Query;
}>;

/** The verbs of the API on every kind, in Kubernetes' shapes. Errors are thrown as ApiError. */
export class ResourceApi {
  private readonly kinds: ReadonlyMap<string, ServedKind>;
  private readonly watches = new Set<WatchResponse>();

  /** Watches that are taken and not open yet. */
  private opening = 0;
  private readonly frames = new FrameCache();

  /** @param maxWatches open at once, over all kinds; further ones are told to try again */
  constructor(
    kinds: readonly ServedKind[],
    private readonly maxWatches = Infinity,
  ) {
    this.kinds = new Map(kinds.map((kind) => [kind.resource.plural, kind]));
  }

  get openWatches(): number {
    return this.watches.size;
  }

  /** Ends every watch with a last bookmark. */
  endWatches(): void {
    for (const watch of [...this.watches]) watch.end();
  }

  async list(request: ApiRequest, reply: FastifyReply): Promise<void> {
    const kind = this.kind(request);
    const options = listOptions(request.query, request.params.namespace);
    const representation = negotiate(request.headers.accept);
    // A watch has no end whose head could be told: HEAD is that of the list.
    if (options.watch !== undefined && request.method !== 'HEAD')
      return this.watch(kind, options, { request, reply });
    const warnings = await kind.refresh();
    if (kind.knows(options.revision) && options.revision > kind.collection.revision)
      await this.reach(kind, options.revision);
    const revision = kind.collection.revision;
    const objects = kind.collection.list().filter(options.selection);
    warn(reply, warnings);
    const body =
      representation.as === 'table'
        ? asTable(objects, {
            plural: kind.resource.plural,
            representation,
            includeObject: options.includeObject,
            resourceVersion: String(revision),
          })
        : asList(objects, kind.resource.kind, revision);
    await reply.send(body);
  }

  async get(request: ApiRequest, reply: FastifyReply): Promise<void> {
    const kind = this.kind(request);
    const { namespace, name } = place(request);
    const view = viewOf(request);
    const object = await kind.read(namespace, name);
    if (object === undefined) throw notFound({ plural: kind.resource.plural, name });
    await show(kind, object, { view, reply });
  }

  async create(request: ApiRequest, reply: FastifyReply): Promise<void> {
    const { kind, writes } = this.writable(request, 'create');
    const { namespace } = request.params;
    if (namespace === undefined) throw methodNotAllowed(kind.resource.plural, 'create in all namespaces');
    const view = viewOf(request);
    const written = await writes.create(namespace, jsonBody(request), writeOptions(request.query));
    reply.code(201);
    await this.showWritten(kind, written, { view, reply });
  }

  async replace(request: ApiRequest, reply: FastifyReply): Promise<void> {
    const { kind, writes } = this.writable(request, 'update');
    const view = viewOf(request);
    const written = await writes.replace(place(request), jsonBody(request), writeOptions(request.query));
    await this.showWritten(kind, written, { view, reply });
  }

  async patch(request: ApiRequest, reply: FastifyReply): Promise<void> {
    const { kind, writes } = this.writable(request, 'patch');
    const view = viewOf(request);
    const type = mediaType(request);
    const body = type.endsWith('+json') ? parseJson(bytes(request)) : undefined;
    const written = await writes.patch(place(request), parsePatch(type, body), writeOptions(request.query));
    await this.showWritten(kind, written, { view, reply });
  }

  async delete(request: ApiRequest, reply: FastifyReply): Promise<void> {
    const { kind, writes } = this.writable(request, 'delete');
    const view = viewOf(request);
    const options = bytes(request).length === 0 ? {} : parseJson(bytes(request));
    // What it asks for cannot be told, and it may be a dry run.
    if (!isMap(options)) throw badRequest('the body must be one DeleteOptions object');
    const dry = writeOptions(request.query).dryRun || dryRun(options['dryRun']);
    const expected = isMap(options['preconditions']) ? options['preconditions'] : {};
    const { deleted, object, revision } = await writes.delete(place(request), expected, dry);
    await settle(kind, revision);
    if (!deleted) return show(kind, object, { view, reply });
    const { name, uid } = object.metadata;
    const details = { name, group: 'bulwark.dev', kind: kind.resource.plural, uid };
    await reply.send({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details });
  }

  private async watch(kind: ServedKind, options: ListOptions, exchange: Exchange): Promise<void> {
    const watch = options.watch;
    if (watch === undefined) return;
    if (this.watches.size + this.opening >= this.maxWatches) throw tooManyWatches(this.maxWatches);
    const representation = negotiate(exchange.request.headers.accept);
    const stopObserving = kind.observe();
    this.opening += 1;
    try {
      await kind.refresh();
      const from = watch.from ?? 0;
      if (from > 0 && !kind.knows(from)) throw expired(from, kind.collection.oldestRevision);
      if (from > kind.collection.revision) await this.reach(kind, from);
      const response = new WatchResponse(
        {
          collection: kind.collection,
          kind: kind.resource.kind,
          selection: options.selection,
          options: watch,
          frames: this.frames,
          form: [...Object.values(representation), options.includeObject].join(' '),
          render: (object, first) =>
            representation.as === 'object'
              ? object
              : asTable([object], {
                  plural: kind.resource.plural,
                  representation,
                  includeObject: options.includeObject,
                  columns: first,
                  ...resourceVersionOf(object),
                }),
        },
        exchange.reply.raw,
        () => {
          this.watches.delete(response);
          stopObserving();
        },
      );
      response.start();
      exchange.reply.hijack();
      if (!response.isOver) this.watches.add(response);
    } catch (error) {
      stopObserving();
      throw error;
    } finally {
      this.opening -= 1;
    }
  }

  private async showWritten(kind: ServedKind, written: Written, answer: ViewedAnswer): Promise<void> {
    await settle(kind, written.revision);
    warn(answer.reply, written.warnings);
    await show(kind, kind.present(written.object), answer);
  }

  private async reach(kind: ServedKind, revision: number): Promise<void> {
    if (!(await kind.reach(revision))) throw tooLargeVersion(revision, kind.collection.revision);
  }

  private kind(request: ApiRequest): ServedKind {
    const kind = this.kinds.get(request.params.plural ?? '');
    if (kind === undefined)
      throw new ApiError('NotFound', 'the server could not find the requested resource');
    return kind;
  }

  private writable(request: ApiRequest, verb: string): { kind: ServedKind; writes: ObjectWrites } {
    const kind = this.kind(request);
    if (kind.writes === undefined) throw methodNotAllowed(kind.resource.plural, verb);
    return { kind, writes: kind.writes };
  }
}

interface Exchange {
  readonly request: ApiRequest;
  readonly reply: FastifyReply;
}

/** How the answer is wanted. Worked out before anything is written: a write is not refused after it was made. */
interface View {
  readonly representation: Representation;
  readonly includeObject: ListOptions['includeObject'];
}

interface ViewedAnswer {
  readonly view: View;
  readonly reply: FastifyReply;
}

function viewOf({ headers, query }: ApiRequest): View {
  return { representation: negotiate(headers.accept), includeObject: includeObject(query) };
}

async function show(kind: ServedKind, object: ApiObject, { view, reply }: ViewedAnswer): Promise<void> {
  const { representation, includeObject: included } = view;
  if (representation.as === 'object') return void (await reply.send(object));
  const { plural } = kind.resource;
  const table = { plural, representation, includeObject: included, ...resourceVersionOf(object) };
  await reply.send(asTable([object], table));
}

const SETTLE_MS = 1_000;

/** A client that wrote reads its own write from this replica. */
async function settle(kind: ServedKind, revision: number): Promise<void> {
  if (revision === 0) return;
  const late = new Promise<void>((resolve) => setTimeout(resolve, SETTLE_MS).unref());
  // It is stored already: that it cannot be seen here yet is no failure of the write.
  await Promise.race([kind.reach(revision).catch(() => false), late]);
}

function place(request: ApiRequest): Place {
  return { namespace: request.params.namespace ?? '', name: request.params.name ?? '' };
}

function bytes(request: ApiRequest): Buffer {
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
}

function mediaType(request: ApiRequest): string {
  return (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
}

function jsonBody(request: ApiRequest): unknown {
  const type = mediaType(request);
  // A browser sends a body without a type, or as text, wherever a page tells it to; JSON it asks for first.
  if (type !== 'application/json') {
    throw new ApiError('UnsupportedMediaType', `"${type}" is not supported here; send application/json`);
  }
  if (bytes(request).length === 0) throw badRequest('the request needs a body');
  return parseJson(bytes(request));
}

function resourceVersionOf(object: ApiObject): { resourceVersion?: string } {
  const { resourceVersion } = object.metadata;
  return resourceVersion === undefined ? {} : { resourceVersion };
}

const MAX_WARNINGS = 20;

/** One `Warning` header a sentence, as kubectl prints them. */
function warn(reply: FastifyReply, warnings: readonly string[]): void {
  const headers = [...new Set(warnings)].slice(0, MAX_WARNINGS).map((text) => {
    const plain = text.replaceAll(/[^\x20-\x7e]/g, '?').replaceAll(/["\\]/g, String.raw`\$&`);
    return `299 - "${plain.slice(0, 1_000)}"`;
  });
  if (headers.length > 0) void reply.header('Warning', headers);
}
