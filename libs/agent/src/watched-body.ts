import type { CallerPace } from './caller-pace.js';

/**
 * Bytes read ahead of the caller. An answer no larger ends by itself: one whose body nobody reads then holds its
 * bulkhead slot no longer than the dependency takes to send it.
 */
const READ_AHEAD_BYTES = 64 * 1024;

export interface WatchedBody {
  readonly stream: ReadableStream<Uint8Array>;
  /**
   * Resolves when the source has ended, or the caller wants no more of it. Rejects with what broke it off. Stays open
   * while the caller leaves untaken what is there.
   */
  readonly ended: Promise<void>;
}

export interface WatchOptions {
  readonly pace: CallerPace;
  /** Read from the source before. */
  readonly first: readonly Uint8Array[];
  /**
   * Settles when the guard has heard of the end; never rejects. The caller hears of it then, and not before: its next
   * call must find the slot of this one free.
   */
  readonly judged: Promise<unknown>;
}

/** A body that goes on to its caller and tells how it ended. */
export function watchBody(
  source: ReadableStreamDefaultReader<Uint8Array>,
  { pace, first, judged }: WatchOptions,
): WatchedBody {
  let resolve = (): void => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const ended = new Promise<void>((...settle) => ([resolve, reject] = settle));
  const stream: ReadableStream<Uint8Array> = new ReadableStream(
    {
      type: 'bytes',
      start: (controller) => {
        for (const chunk of first) controller.enqueue(copyOf(chunk));
        // A source that breaks off is told at once, also to a caller that does not read just now.
        source.closed.catch(async (error: unknown) => {
          reject(error);
          await judged;
          controller.error(error);
        });
      },
      pull: async (controller) => {
        pace.release();
        const read = await source.read().catch(() => undefined);
        if (read === undefined) return;
        if (read.done) {
          resolve();
          await judged;
          controller.close();
          controller.byobRequest?.respond(0);
          return;
        }
        controller.enqueue(copyOf(read.value));
        if ((controller.desiredSize ?? 0) <= 0) pace.hold();
      },
      cancel: async (reason) => {
        resolve();
        await Promise.all([source.cancel(reason), judged]);
      },
    },
    { highWaterMark: READ_AHEAD_BYTES },
  );
  return { stream, ended };
}

/** Queueing hands the memory over: what shares it with others must be copied. */
function copyOf(chunk: Uint8Array): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset, byteLength } = chunk;
  if (buffer instanceof ArrayBuffer && byteOffset === 0 && byteLength === buffer.byteLength) {
    return chunk as Uint8Array<ArrayBuffer>;
  }
  return new Uint8Array(chunk);
}
