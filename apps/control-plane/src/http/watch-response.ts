import type { ServerResponse } from 'node:http';
import { expired } from '../errors/api-error.js';
import { statusOf } from '../errors/http-status.js';
import type { ObjectEvent } from '../index/change-history.js';
import type { ObjectCollection } from '../index/object-collection.js';
import { API_VERSION, type ApiObject } from '../objects/api-object.js';
import { seenAs, type Selection } from '../objects/selection.js';
import { frameBytes, type FrameCache } from './frame-cache.js';
import type { WatchOptions } from './request-options.js';

export interface WatchRequest {
  readonly collection: ObjectCollection;
  readonly kind: string;
  readonly selection: Selection;
  readonly options: WatchOptions;
  /** What stands in an event for an object; `first` for the first event of the stream. */
  render(object: ApiObject, first: boolean): unknown;
  /** Names what `render` makes: two watches with the same form get the same bytes. */
  readonly form: string;
  /** Shared by the watches of a server. */
  readonly frames: FrameCache;
}

/** A watcher that has not read this much is slower than the changes: it is dropped, and lists again. */
const MAX_UNREAD_BYTES = 8 * 1024 * 1024;
const BOOKMARK_MS = 60_000;

/** One client's watch: what happened since its revision, then what happens, until the time is over. */
export class WatchResponse {
  private first = true;
  private ended = false;
  private gathering = false;
  private readonly cleanups: (() => void)[] = [];

  constructor(
    private readonly request: WatchRequest,
    private readonly response: ServerResponse,
    private readonly onEnd: () => void,
  ) {}

  /** Throws the API's Expired before anything is sent when the wanted history is gone. */
  start(): void {
    const { collection, options } = this.request;
    const fromNow = options.from === undefined || options.from === 0;
    const backlog = fromNow ? [] : collection.after(options.from ?? 0);
    if (backlog === undefined) throw expired(options.from ?? 0, collection.oldestRevision);
    // Snapshot, backlog and subscription in one synchronous step: nothing is missed or doubled between them.
    this.open();
    if (fromNow) this.sendInitial();
    for (const event of backlog) this.take(event);
    this.cleanups.push(collection.subscribe((event) => this.take(event)));
    this.every(BOOKMARK_MS, () => this.bookmark());
    this.after(options.timeoutMs, () => this.end());
    this.response.once('close', () => this.finish());
  }

  /** Says where the log stands, so that the client may go on from there, and closes. */
  end(): void {
    if (this.ended) return;
    this.bookmark();
    this.release();
    this.response.end();
    this.finish();
  }

  private open(): void {
    this.response.writeHead(200, {
      'Content-Type': 'application/json',
      'Cache-Control': 'no-cache, private',
    });
    this.response.flushHeaders();
    this.response.socket?.setNoDelay(true);
  }

  private sendInitial(): void {
    const { collection, selection, options } = this.request;
    for (const object of collection.list()) if (selection(object)) this.send('ADDED', object);
    if (options.markInitialEnd) this.bookmark({ 'k8s.io/initial-events-end': 'true' });
  }

  private take(event: ObjectEvent): void {
    const type = seenAs(event, this.request.selection);
    if (type !== undefined) this.send(type, event.object);
  }

  private send(type: string, object: ApiObject): void {
    const { first } = this;
    const { frames, form } = this.request;
    this.first = false;
    this.write(
      frames.frame(object, `${type} ${form} ${first}`, () => ({
        type,
        object: this.request.render(object, first),
      })),
    );
  }

  private bookmark(annotations?: Readonly<Record<string, string>>): void {
    const { collection, kind, options } = this.request;
    if (!options.bookmarks) return;
    const metadata = {
      resourceVersion: String(collection.revision),
      creationTimestamp: null,
      ...(annotations === undefined ? {} : { annotations }),
    };
    this.write(frameBytes({ type: 'BOOKMARK', object: { kind, apiVersion: API_VERSION, metadata } }));
  }

  private write(frame: Buffer): void {
    if (this.ended) return;
    this.gather();
    this.response.write(frame);
    if (this.response.writableLength > MAX_UNREAD_BYTES) this.drop();
  }

  /** What is said in one instant goes out in one piece. */
  private gather(): void {
    if (this.gathering) return;
    this.gathering = true;
    this.response.cork();
    queueMicrotask(() => this.release());
  }

  /** Before the end too: what is still gathered then is lost. */
  private release(): void {
    if (!this.gathering) return;
    this.gathering = false;
    this.response.uncork();
  }

  /** Alone and at once: the others are not to wait for it. */
  private drop(): void {
    const error = expired(this.request.options.from ?? 0, this.request.collection.revision);
    this.response.write(frameBytes({ type: 'ERROR', object: statusOf(error) }));
    this.release();
    this.response.destroy();
    this.finish();
  }

  private every(ms: number, action: () => void): void {
    const timer = setInterval(action, ms);
    this.cleanups.push(() => clearInterval(timer));
  }

  private after(ms: number, action: () => void): void {
    const timer = setTimeout(action, ms);
    this.cleanups.push(() => clearTimeout(timer));
  }

  private finish(): void {
    if (this.ended) return;
    this.ended = true;
    for (const cleanup of this.cleanups) cleanup();
    this.onEnd();
  }
}
