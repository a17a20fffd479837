import type { ClientRequest, IncomingMessage } from 'node:http';
import { pairs } from './answer.js';
import type { CallerPace } from './caller-pace.js';

/**
 * Passes a request's body on as it comes. While the upstream would take more and the caller sends nothing, the caller
 * holds the call up; while the upstream takes nothing, that is the upstream's time. The end of either side is seen by the
 * call itself; here it only ends the other where nothing more can come.
 */
export function streamUpload(request: IncomingMessage, upstream: ClientRequest, pace: CallerPace): void {
  let over = false;
  const waitForCaller = (): void => {
    if (!over && upstream.socket?.connecting === false) pace.hold('upload');
  };
  const end = (): void => {
    over = true;
    pace.release('upload');
  };
  upstream.once('socket', (socket) => {
    if (socket.connecting) socket.once('connect', waitForCaller);
    else waitForCaller();
  });
  upstream.on('drain', () => {
    waitForCaller();
    request.resume();
  });
  upstream.once('close', () => {
    end();
    // Nobody wants the rest; it is read so that the caller can be answered on this connection.
    request.resume();
  });
  request.on('data', (chunk: Buffer) => {
    if (over || upstream.destroyed || upstream.write(chunk)) return;
    pace.release('upload');
    request.pause();
  });
  request.once('end', () => {
    end();
    if (request.rawTrailers.length > 0) upstream.addTrailers(pairs(request.rawTrailers));
    upstream.end();
  });
  request.on('error', () => undefined);
  request.once('close', () => {
    if (!request.complete) upstream.destroy();
  });
}
