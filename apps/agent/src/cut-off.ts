import type { ServerResponse } from 'node:http';

/**
 * Breaks an answer off. The connection is reset, not closed: an answer that its connection's end delimits would look
 * whole otherwise.
 */
export function cutOff(response: ServerResponse): void {
  response.socket?.resetAndDestroy();
  response.destroy();
}
