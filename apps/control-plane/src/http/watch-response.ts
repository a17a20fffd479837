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
/** What there is at the beginning may be any amount: more of it is written once the client has read this far. */
const BEGINNING_UNREAD_BYTES = 1024 * 1024;
/** Changes that may gather meanwhile: about as many as the history holds, so listing again is no worse. */
const MAX_WAITING_CHANGES = 8_192;
const BOOKMARK_MS = 60_000;

/** Something to be written as soon as the client has read what came before. */
type Step = () => void;

/** One client's watch: what happened since its revision, then what happens, until the time is over. */
export class WatchResponse {
  private first = true;
  private ended = false;
  private gathering = false;
  /** What is not written yet, in order: the rest of the beginning, and the changes since. Empty = in step. */
  private waiting: Step[] = [];
  private waitingChanges = 0;
  private readonly cleanups: (() => void)[] = [];

  constructor(
    private readonly request: WatchRequest,
    private readonly response: ServerResponse,
    private readonly onEnd: () => void,
  ) {}

  /** It has ended, however: nothing is written any more and nothing is held. */
  get isOver(): boolean {
    return this.ended;
  }

  /** Throws the API's Expired before anything is sent when the wanted history is gone. */
  start(): void {
    const { collection, options } = this.request;
    const fromNow = options.from === undefined || options.from === 0;
    const backlog = fromNow ? [] : collection.after(options.from ?? 0);
    if (backlog === undefined) throw expired(options.from ?? 0, collection.oldestRevision);
    // The client went while the collection was brought up to date: its "close" has been and does not come again.
    if (this.response.closed) return this.finish();
    // Snapshot, backlog and subscription in one synchronous step: nothing is missed or doubled between them.
    this.open();
    this.waiting = fromNow ? this.initial() : backlog.map((event) => () => this.tell(event));
    this.cleanups.push(collection.subscribe((event) => this.take(event)));
    this.every(BOOKMARK_MS, () => this.bookmark());
    this.after(options.timeoutMs, () => this.end());
    this.response.once('close', () => this.finish());
    this.catchUp();
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

  private initial(): Step[] {
    const { collection, selection, options } = this.request;
    const { revision } = collection;
    const steps = collection
      .list()
      .filter(selection)
      .map(
        (object): Step =>
          () =>
            this.send('ADDED', object),
      );
    if (options.markInitialEnd) {
      steps.push(() => this.writeBookmark(revision, { 'k8s.io/initial-events-end': 'true' }));
    }
    return steps;
  }

  private take(event: ObjectEvent): void {
    if (this.waiting.length === 0) return this.tell(event);
    this.waiting.push(() => this.tell(event));
    this.waitingChanges += 1;
    if (this.waitingChanges > MAX_WAITING_CHANGES) this.drop();
  }

  /** Writes what waits, as far as the client reads. */
  private catchUp(): void {
    if (this.waiting.length === 0) return;
    let written = 0;
    for (const step of this.waiting) {
      if (this.ended || this.response.writableLength >= BEGINNING_UNREAD_BYTES) break;
      step();
      written += 1;
    }
    this.waiting = this.waiting.slice(written);
    if (this.waiting.length === 0) this.waitingChanges = 0;
  }

  private tell(event: ObjectEvent): void {
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

  /** Not while something waits: a client that went on from here would miss it. */
  private bookmark(): void {
    const { collection, options } = this.request;
    if (options.bookmarks && this.waiting.length === 0) this.writeBookmark(collection.revision);
  }

  private writeBookmark(revision: number, annotations?: Readonly<Record<string, string>>): void {
    const { kind } = this.request;
    const metadata = {
      resourceVersion: String(revision),
      creationTimestamp: null,
      ...(annotations === undefined ? {} : { annotations }),
    };
    this.write(frameBytes({ type: 'BOOKMARK', object: { kind, apiVersion: API_VERSION, metadata } }));
  }

  private write(frame: Buffer): void {
    if (this.ended) return;
    this.gather();
    // Not by "drain": a corked response does not always tell it.
    if (this.waiting.length === 0) this.response.write(frame);
    else this.response.write(frame, () => this.catchUp());
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
    this.waiting = [];
    for (const cleanup of this.cleanups) cleanup();
    this.onEnd();
  }
}
