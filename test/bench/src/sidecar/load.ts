import { connect, type Socket } from 'node:net';
import { median } from '../harness.js';

export interface LoadOptions {
  readonly port: number;
  readonly path: string;
  /** Of every answer's body. */
  readonly bytes: number;
  readonly connections: number;
  readonly forMs: number;
}

export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  readonly medianMs: number;
}

/** Calls over kept connections, on each one after the other, as fast as answers come. Rejects when one is not as expected. */
export async function load(options: LoadOptions): Promise<LoadResult> {
  const latenciesMs: number[] = [];
  const beganMs = performance.now();
  const untilMs = beganMs + options.forMs;
  await Promise.all(
    Array.from({ length: options.connections }, () => callInTurn(options, untilMs, latenciesMs)),
  );
  const seconds = (performance.now() - beganMs) / 1_000;
  return { requests: latenciesMs.length, seconds, medianMs: median(latenciesMs) };
}

function callInTurn(
  { port, path, bytes }: LoadOptions,
  untilMs: number,
  latenciesMs: number[],
): Promise<void> {
  const call = `GET ${path} HTTP/1.1\r\nHost: reco\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n`;
  return new Promise((resolve, reject) => {
    const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true });
    let head = '';
    /** Of the body, still to come; undefined while the head is. */
    let left: number | undefined;
    let sentMs = 0;
    const send = (): void => {
      sentMs = performance.now();
      socket.write(call, 'latin1');
    };
    socket.on('connect', send);
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`${path}: the connection was closed`)));
    socket.on('data', (chunk: Buffer) => {
      let from = 0;
      if (left === undefined) {
        head += chunk.toString('latin1');
        const end = head.indexOf('\r\n\r\n');
        if (end < 0) return;
        if (
          !head.startsWith('HTTP/1.1 200') ||
          !head.toLowerCase().includes(`content-length: ${bytes}\r\n`)
        ) {
          socket.destroy(new Error(`unexpected answer: ${head.slice(0, 300)}`));
          return;
        }
        left = bytes;
        from = chunk.length - (head.length - end - 4);
        head = '';
      }
      left -= chunk.length - from;
      if (left > 0) return;
      left = undefined;
      latenciesMs.push(performance.now() - sentMs);
      if (performance.now() < untilMs) return send();
      socket.removeAllListeners('close');
      socket.destroy();
      resolve();
    });
  });
}
