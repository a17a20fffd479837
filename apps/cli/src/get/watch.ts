import { objectPath, type Resource } from '@bulwark/views';
import { ConnectionError } from '../client/connection.js';
import { delay } from '../client/delay.js';
import { ApiError } from '../client/status.js';
import { watchStream, type WatchEvent } from '../client/watch-stream.js';
import type { Place, Query } from '../client/api-client.js';
import { CommandError, EXIT, Interrupted, UsageError } from '../command-error.js';
import type { Context } from '../context.js';
import type { Target } from '../targets.js';
import { noneFound, placeOf, refuseContradictions, selectorsOf } from './get.js';
import { isTable, type GetOptions } from './options.js';
import { watchedObjects, watchedRows, type Watched } from './watched.js';

const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 5_000;
/** A stream that ends sooner than this is waited for as if it had failed. */
const SHORT_STREAM_MS = 1_000;

/** `bulwark get -w`: shows what is, then every change, until Ctrl-C or until nobody reads. */
export async function watch(
  targets: readonly Target[],
  options: GetOptions,
  context: Context,
): Promise<number> {
  refuseContradictions(targets, options);
  const [target, ...more] = targets;
  if (target === undefined || more.length > 0 || target.names.length > 1) {
    throw new UsageError('-w watches one kind, or one object', 'Example: bulwark get breakers -w');
  }
  const { resource } = target;
  const [name] = target.names;
  const subject = {
    resource,
    name,
    place: placeOf(resource, options, context),
    query: name === undefined ? selectorsOf(options) : { fieldSelector: `metadata.name=${name}` },
  };
  try {
    if (isTable(options.output))
      await new WatchRun(subject, watchedRows(resource, options, context), { options, context }).run();
    else await new WatchRun(subject, watchedObjects(resource, options, context), { options, context }).run();
  } catch (error) {
    if (!(error instanceof Interrupted) || context.io.interrupted.aborted) throw error;
  }
  return EXIT.ok;
}

interface Subject {
  readonly resource: Resource;
  readonly name: string | undefined;
  readonly place: Place;
  readonly query: Query;
}

class WatchRun<Item> {
  private readonly known = new Map<string, Item>();
  private readonly signal: AbortSignal;
  private readonly options: GetOptions;
  private readonly context: Context;
  /** Undefined = everything must be listed (again). */
  private version: string | undefined;
  private failures = 0;
  private lost = false;

  constructor(
    private readonly subject: Subject,
    private readonly watched: Watched<Item>,
    { options, context }: { readonly options: GetOptions; readonly context: Context },
  ) {
    this.options = options;
    this.context = context;
    this.signal = AbortSignal.any([context.io.interrupted, context.io.outputClosed]);
  }

  /** Ends by an error only: Interrupted, or an answer that trying again does not mend. */
  async run(): Promise<never> {
    await this.first();
    for (;;) {
      const startedMs = performance.now();
      try {
        this.version ??= await this.again();
        await this.follow(this.version);
        if (performance.now() - startedMs >= SHORT_STREAM_MS) this.failures = 0;
        else await this.pause();
      } catch (error) {
        await this.recover(error);
      }
    }
  }

  private async first(): Promise<void> {
    const { items, version } = await this.watched.list(this.subject.place, this.subject.query);
    if (items.length === 0) this.tellNone();
    for (const item of items) this.known.set(this.key(item), item);
    this.version = version;
    if (!this.options.watchOnly) await this.show(items, 'ADDED');
  }

  private tellNone(): void {
    const { resource, name } = this.subject;
    if (name !== undefined) {
      throw new CommandError(
        `Error from server (NotFound): ${resource.plural}.bulwark.dev "${name}" not found`,
      );
    }
    this.context.io.err(noneFound(this.options, this.context));
  }

  /** Lists anew and shows only what has changed meanwhile, deletions included. */
  private async again(): Promise<string> {
    const { items, version } = await this.watched.list(this.subject.place, this.subject.query);
    this.opened();
    const present = new Set(items.map((item) => this.key(item)));
    for (const [key, item] of this.known) if (!present.has(key)) await this.take('DELETED', item);
    for (const item of items) {
      const former = this.known.get(this.key(item));
      if (former === undefined) await this.take('ADDED', item);
      else if (this.versionOf(former) !== this.versionOf(item)) await this.take('MODIFIED', item);
    }
    return version;
  }

  private async follow(resourceVersion: string): Promise<void> {
    const { place, query } = this.subject;
    const { accept } = this.watched;
    const opened = () => this.opened();
    const request = { place, query, accept, resourceVersion, signal: this.signal, opened };
    for await (const { type, object } of watchStream(this.context.api, request)) {
      const items = type === 'BOOKMARK' ? [] : this.watched.itemsOf(object);
      for (const item of items) {
        await this.take(type, item);
        this.version = this.versionOf(item) ?? this.version;
      }
      this.version = listVersion(object) ?? this.version;
      this.failures = 0;
    }
  }

  private async take(type: WatchEvent['type'], item: Item): Promise<void> {
    if (type === 'DELETED') this.known.delete(this.key(item));
    else this.known.set(this.key(item), item);
    await this.show([item], type);
    if (type === 'DELETED' && !this.options.watchEvents) {
      const name = this.watched.metadata(item).name ?? '';
      this.context.io.err(`${objectPath(this.subject.resource, name)} deleted\n`);
    }
  }

  private async show(items: readonly Item[], type: WatchEvent['type']): Promise<void> {
    this.context.io.out(await this.watched.text(items, type));
  }

  private opened(): void {
    if (this.lost) this.context.io.err('Connected again.\n');
    this.lost = false;
  }

  private async recover(error: unknown): Promise<void> {
    const gone = error instanceof ApiError && (error.code === 410 || error.code === 504);
    if (gone) this.version = undefined;
    const passing =
      error instanceof ConnectionError ||
      (error instanceof ApiError && (error.code === 429 || error.code >= 500));
    if (!gone && !passing) throw error;
    if (passing && !gone && !this.lost) {
      this.lost = true;
      const why = error instanceof ConnectionError ? error.why : error.message;
      this.context.io.err(`Lost the server ${this.context.api.connection.url}: ${why}. Trying again …\n`);
    }
    // The first time a version is too old, listing again mends it at once.
    if (gone && this.failures === 0) this.failures = 1;
    else await this.pause();
  }

  private async pause(): Promise<void> {
    const longest = Math.min(FIRST_WAIT_MS * 2 ** this.failures, LONGEST_WAIT_MS);
    this.failures += 1;
    await delay(longest * (0.5 + Math.random() / 2), this.signal);
  }

  private key(item: Item): string {
    const { namespace = '', name = '' } = this.watched.metadata(item);
    return `${namespace}/${name}`;
  }

  private versionOf(item: Item): string | undefined {
    return this.watched.metadata(item).resourceVersion;
  }
}

/** A table's or bookmark's own version. */
function listVersion(object: unknown): string | undefined {
  const version = (object as { metadata?: { resourceVersion?: unknown } } | undefined)?.metadata
    ?.resourceVersion;
  return typeof version === 'string' && version !== '' ? version : undefined;
}
