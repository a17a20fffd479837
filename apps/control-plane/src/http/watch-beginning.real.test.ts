import { createServer, get, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from '@bulwark/testing';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ObjectCollection } from '../index/object-collection.js';
import type { ApiObject } from '../objects/api-object.js';
import { FrameCache } from './frame-cache.js';
import { WatchResponse } from './watch-response.js';

const OBJECTS = 3_000;
let collection: ObjectCollection;
let server: Server;
let watch: WatchResponse | undefined;
let ends: number;

/** Three times what a client may leave unread. */
beforeEach(async () => {
  collection = new ObjectCollection(5);
  for (let index = 0; index < OBJECTS; index += 1) put(index, 6 + index);
  const frames = new FrameCache();
  ends = 0;
  server = createServer((_request, response) => {
    const request = {
      collection,
      kind: 'k',
      selection: () => true,
      options: { from: undefined, bookmarks: true, timeoutMs: 600_000, markInitialEnd: true },
      render: (object: ApiObject) => object,
      form: 'object',
      frames,
    };
    watch = new WatchResponse(request, response, () => (ends += 1));
    watch.start();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterEach(async () => {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
  await eventually(() => watch?.isOver === true);
});

function put(index: number, revision: number): void {
  const name = `policy-${String(index).padStart(5, '0')}`;
  const metadata = { name, namespace: 'shop', resourceVersion: String(revision) };
  collection.put({ apiVersion: 'v', kind: 'k', metadata, spec: 'x'.repeat(8_000) }, revision);
}

function opened(): Promise<IncomingMessage> {
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve) => get({ port, host: '127.0.0.1' }, resolve));
}

interface Frame {
  readonly type: string;
  readonly object: { readonly metadata: { readonly name?: string; readonly resourceVersion: string } };
}

function readInto(frames: Frame[], response: IncomingMessage): void {
  let text = '';
  response.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (text + chunk).split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) frames.push(JSON.parse(line) as Frame);
  });
  response.on('error', () => undefined);
}

it('tells all there is, however much, then what changed while the client read it, in order and once', async () => {
  const response = await opened();
  // Nothing is read yet: the beginning cannot have gone out whole, and the changes wait behind it.
  for (let index = 0; index < 500; index += 1) put(index, 10_000 + index);
  const frames: Frame[] = [];
  readInto(frames, response);
  await eventually(() => frames.length >= OBJECTS + 501, { withinMs: 20_000 });
  expect(frames.slice(0, OBJECTS).every(({ type }) => type === 'ADDED')).toBe(true);
  expect(new Set(frames.slice(0, OBJECTS).map(({ object }) => object.metadata.name)).size).toBe(OBJECTS);
  expect(frames[OBJECTS]).toMatchObject({
    type: 'BOOKMARK',
    object: { metadata: { resourceVersion: String(5 + OBJECTS) } },
  });
  const after = frames.slice(OBJECTS + 1);
  expect(after.map(({ type, object }) => `${type} ${object.metadata.resourceVersion}`)).toEqual(
    Array.from({ length: 500 }, (_, index) => `MODIFIED ${10_000 + index}`),
  );
  put(7, 20_000);
  await eventually(() => frames.at(-1)?.object.metadata.resourceVersion === '20000');
  expect(ends).toBe(0);
});

it('whose client never reads the beginning is dropped when too much has changed, and nothing of it is left', async () => {
  const response = await opened();
  response.on('error', () => undefined);
  for (let index = 0; index < 9_000; index += 1) put(index % OBJECTS, 10_000 + index);
  expect([ends, collection.watchers, watch?.isOver]).toEqual([1, 0, true]);
});
