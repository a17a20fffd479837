import { StringDecoder } from 'node:string_decoder';
import { CommandError, Interrupted } from '../command-error.js';
import { notBulwark, pathOf, refusal, text, type ApiClient, type Place, type Query } from './api-client.js';
import { ApiError, isStatus } from './status.js';

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: unknown;
}

/** Longest silence on a watch before it is taken for dead; servers send a bookmark about once a minute. */
const SILENCE_MS = 150_000;
const LONGEST_LINE = 16 * 1024 * 1024;

export interface WatchRequest {
  readonly place: Place;
  readonly query: Query;
  readonly accept: string;
  readonly resourceVersion: string;
  readonly signal: AbortSignal;
  /** Called when the server has accepted the watch. */
  readonly opened: () => void;
}

/**
 * One stream of events from a resource version on; ends when the server ends it.
 * @throws ApiError: code 410 = too old, list again. ConnectionError, Interrupted.
 */
export async function* watchStream(api: ApiClient, request: WatchRequest): AsyncGenerator<WatchEvent> {
  const { place, accept, signal } = request;
  const query = {
    ...request.query,
    watch: '1',
    allowWatchBookmarks: 'true',
    resourceVersion: request.resourceVersion,
  };
  const response = await api.open(
    pathOf(place, query),
    { method: 'GET', accept },
    { signal, timeoutMs: SILENCE_MS },
  );
  const code = response.statusCode ?? 0;
  if (code !== 200) {
    const body = await text(response, (error) => api.connection.failure(error));
    throw refusal(api.connection.url, code, body);
  }
  request.opened();
  const decoder = new StringDecoder('utf8');
  let rest = '';
  try {
    for await (const chunk of response) {
      rest += decoder.write(chunk as Buffer);
      if (rest.length > LONGEST_LINE) throw new CommandError('error: an event of the server is over 16 MiB');
      const lines = rest.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line !== '') yield parseEvent(line, api);
    }
  } catch (error) {
    throw signal.aborted ? new Interrupted() : api.connection.failure(error);
  } finally {
    response.destroy();
  }
}

function parseEvent(line: string, api: ApiClient): WatchEvent {
  let event: { readonly type: WatchEvent['type'] | 'ERROR'; readonly object: unknown };
  try {
    event = JSON.parse(line) as typeof event;
  } catch (error) {
    throw notBulwark(api.connection.url, error);
  }
  if (event.type !== 'ERROR') return { type: event.type, object: event.object };
  if (isStatus(event.object)) throw new ApiError(event.object.code ?? 500, event.object);
  throw new CommandError('error: the server ended the watch with an error it did not explain');
}
