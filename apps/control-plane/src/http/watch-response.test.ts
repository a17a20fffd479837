import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ObjectCollection } from '../index/object-collection.js';
import type { ApiObject } from '../objects/api-object.js';
import type { WatchOptions } from './request-options.js';
import { FrameCache } from './frame-cache.js';
import { WatchResponse } from './watch-response.js';

/** As much of a response as a watch uses; `unread` is what the client has not taken. */
class FakeResponse extends EventEmitter {
  readonly lines: { type: string; object: { metadata?: { resourceVersion?: string }; code?: number } }[] = [];
  readonly socket = undefined;
  writableLength = 0;
  state = 'new';
  closed = false;
  writeHead(): void {
    this.state = 'open';
  }
  flushHeaders(): void {
    expect(this.state).toBe('open');
  }
  corked = 0;
  cork(): void {
    this.corked += 1;
  }
  uncork(): void {
    this.corked -= 1;
  }
  write(bytes: Buffer): void {
    for (const line of bytes.toString().trim().split('\n'))
      this.lines.push(JSON.parse(line) as (typeof this.lines)[number]);
  }
  end(): void {
    this.state = 'ended';
  }
  destroy(): void {
    this.state = 'destroyed';
  }
}

const options: WatchOptions = { from: 5, bookmarks: true, timeoutMs: 600_000, markInitialEnd: false };
let collection: ObjectCollection;
let response: FakeResponse;
let ended: number;
let rendered: number;
let frames: FrameCache;

beforeEach(() => {
  vi.useFakeTimers();
  collection = new ObjectCollection(5);
  response = new FakeResponse();
  ended = 0;
  rendered = 0;
  frames = new FrameCache();
});
afterEach(() => vi.useRealTimers());

function object(name: string, revision: number): ApiObject {
  return {
    apiVersion: 'v',
    kind: 'k',
    metadata: { name, namespace: 'shop', resourceVersion: String(revision) },
  };
}

function watch(more: Partial<WatchOptions> = {}): WatchResponse {
  const request = {
    collection,
    kind: 'k',
    selection: () => true,
    options: { ...options, ...more },
    render: (one: ApiObject) => ((rendered += 1), one),
    form: 'object',
    frames,
  };
  const made = new WatchResponse(request, response as unknown as ServerResponse, () => (ended += 1));
  made.start();
  return made;
}

describe('a watch', () => {
  it('tells where the log stands once a minute, and when it ends', () => {
    watch();
    collection.put(object('a', 6), 6);
    vi.advanceTimersByTime(60_000);
    collection.advance(9);
    vi.advanceTimersByTime(540_000);
    const told = response.lines.map(
      ({ type, object: { metadata } }) => `${type} ${metadata?.resourceVersion}`,
    );
    expect(told.slice(0, 2)).toEqual(['ADDED 6', 'BOOKMARK 6']);
    expect(told.at(-1)).toBe('BOOKMARK 9');
    expect([response.state, ended, collection.watchers]).toEqual(['ended', 1, 0]);
  });

  it('whose client does not read is dropped alone, and told to list again', () => {
    watch();
    response.writableLength = 9 * 1024 * 1024;
    collection.put(object('a', 6), 6);
    expect(response.lines.at(-1)).toMatchObject({ type: 'ERROR', object: { code: 410 } });
    expect([response.state, ended, collection.watchers]).toEqual(['destroyed', 1, 0]);
  });

  it('shares the bytes of an event with all watches of the same form', () => {
    for (let index = 0; index < 100; index += 1) watch();
    collection.put(object('a', 6), 6);
    collection.put(object('b', 7), 7);
    expect([response.lines.length, rendered]).toEqual([200, 2]);
    collection.put(object('c', 8), 8);
    expect(rendered).toBe(3);
  });

  it('ends when the client goes', () => {
    watch();
    response.emit('close');
    expect([ended, collection.watchers]).toEqual([1, 0]);
    vi.advanceTimersByTime(600_000);
    expect(response.lines).toEqual([]);
  });

  it('whose client went before it began holds nothing', () => {
    response.closed = true;
    const made = watch();
    expect([made.isOver, ended, collection.watchers, vi.getTimerCount()]).toEqual([true, 1, 0, 0]);
  });

  it('from a forgotten revision never begins', () => {
    expect(() => watch({ from: 4 })).toThrow('too old resource version: 4 (5)');
    expect([response.state, collection.watchers]).toEqual(['new', 0]);
  });
});
