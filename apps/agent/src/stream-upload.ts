import type { IncomingMessage } from 'node:http';
import type { CallerPace } from './caller-pace.js';
import { trailersPassedOn } from './hop-headers.js';
import type { Upload, UploadSource } from './upstream/exchange.js';

/**
 * Passes a request's body on as it comes. While the upstream would take more and the caller sends nothing, the caller
 * holds the call up; while the upstream takes nothing, that is the upstream's time. A caller that goes away in the
 * middle is seen by the call itself, which then ends the upstream's side.
 */
export function streamUpload(request: IncomingMessage, upload: Upload, pace: CallerPace): UploadSource {
  const caller = new CallerWatch(pace);
  let over = false;
  /** The upstream's buffers are. */
  let full = false;
  const awaitCaller = (): void => {
    if (!over && !full && upload.connected) caller.expect();
  };
  request.on('data', (chunk: Buffer) => {
    caller.came();
    if (over) return;
    full = !upload.write(chunk);
    if (full) request.pause();
    else awaitCaller();
  });
  request.once('end', () => {
    over = true;
    caller.came();
    upload.end(trailersPassedOn(request.rawTrailers));
  });
  request.on('error', () => undefined);
  return {
    ready: awaitCaller,
    drained: () => {
      full = false;
      awaitCaller();
      request.resume();
    },
    over: () => {
      over = true;
      caller.came();
      // Nobody wants the rest; it is read so that the caller can be answered on this connection.
      request.resume();
    },
  };
}

/**
 * Notes when a caller that is expected to send does not. What has come but was not read yet is not the caller's delay, so
 * that a whole turn of the event loop, with a look at its connection, must have found nothing.
 */
class CallerWatch {
  readonly #pace: CallerPace;
  #look: NodeJS.Immediate | undefined;

  constructor(pace: CallerPace) {
    this.#pace = pace;
  }

  expect(): void {
    clearImmediate(this.#look);
    this.#look = setImmediate(() => {
      this.#look = setImmediate(() => this.#pace.hold('upload'));
    });
  }

  came(): void {
    clearImmediate(this.#look);
    this.#pace.release('upload');
  }
}
