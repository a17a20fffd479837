import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export interface TcpProxyOptions {
  /** Where connections go: "host:port", or a URL whose host and port are taken. */
  readonly target: string;
}

export interface TcpProxy extends AsyncDisposable {
  readonly port: number;
  /** "127.0.0.1:PORT". */
  readonly address: string;
  /** Connections standing now. */
  connections(): number;
  /** Resets all connections, and every new one until `resume`. */
  cut(): void;
  /** Resets the connections standing now; new ones are served. */
  reset(): void;
  /** Holds all bytes in both directions; connections stand and new ones are accepted, as with a dead link. */
  pause(): void;
  /** Ends `cut` and `pause`; held bytes flow. */
  resume(): void;
  /** Every chunk is delayed by `ms` in each direction, in order; 0 ends it. */
  slow(ms: number): void;
  /** Ends everything. Idempotent. */
  close(): Promise<void>;
}

interface Links {
  state: 'open' | 'cut' | 'paused';
  delayMs: number;
  readonly sockets: Set<Socket>;
  /** Woken by `resume` and by every `reset`. */
  readonly held: Set<() => void>;
}

/** A proxy that stands between a client and a server and misbehaves on command. */
export async function startTcpProxy({ target }: TcpProxyOptions): Promise<TcpProxy> {
  const to = hostAndPort(target);
  const links: Links = { state: 'open', delayMs: 0, sockets: new Set(), held: new Set() };
  const server = createServer({ pauseOnConnect: true }, (near) => serve(near, to, links));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return controls(server, links, port);
}

function controls(server: Server, links: Links, port: number): TcpProxy {
  const wake = () => {
    for (const each of [...links.held]) each();
  };
  const reset = () => {
    for (const socket of links.sockets) socket.resetAndDestroy();
    wake();
  };
  const close = async () => {
    reset();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return {
    port,
    address: `127.0.0.1:${port}`,
    // Two sockets each, when both ends stand.
    connections: () => Math.ceil(links.sockets.size / 2),
    cut: () => {
      links.state = 'cut';
      reset();
    },
    reset,
    pause: () => {
      links.state = 'paused';
    },
    resume: () => {
      links.state = 'open';
      wake();
    },
    slow: (ms) => {
      links.delayMs = ms;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

function hostAndPort(target: string): { host: string; port: number } {
  const url = new URL(target.includes('://') ? target : `tcp://${target}`);
  return { host: url.hostname, port: Number(url.port) };
}

function serve(near: Socket, to: { host: string; port: number }, links: Links): void {
  if (links.state === 'cut') {
    near.resetAndDestroy();
    return;
  }
  const far = connect(to);
  const end = () => {
    near.resetAndDestroy();
    far.resetAndDestroy();
  };
  for (const socket of [near, far]) {
    links.sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', end);
    socket.on('close', () => links.sockets.delete(socket));
  }
  void carry(near, far, links).finally(() => far.end());
  void carry(far, near, links).finally(() => near.end());
}

/** Copies one direction, chunk by chunk, so that order survives any delay. A broken socket ends it. */
async function carry(from: Socket, to: Socket, links: Links): Promise<void> {
  try {
    for await (const chunk of from) {
      if (links.delayMs > 0) await delay(links.delayMs);
      while (links.state === 'paused' && !to.destroyed) await heldUntilWoken(links);
      if (to.destroyed) return;
      if (!to.write(chunk as Buffer)) await drained(to);
    }
  } catch {
    to.destroy();
  }
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function heldUntilWoken(links: Links): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      links.held.delete(wake);
      resolve();
    };
    links.held.add(wake);
  });
}

function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      socket.off('drain', done).off('close', done);
      resolve();
    };
    socket.on('drain', done).on('close', done);
  });
}
