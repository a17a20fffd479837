import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Writes one line of the story. */
export type Say = (line: string) => void;

export interface Example {
  /** For `npm run example -- NAME`. */
  readonly name: string;
  /** What it shows, in one line. */
  readonly shows: string;
  /** Plays it to the end; everything it started is over when it resolves. Loaded only when it is run. */
  readonly load: () => Promise<{ readonly run: (say: Say) => Promise<void> }>;
}

/** A dependency on this machine, which can be broken and healed. */
export interface Dependency {
  readonly url: string;
  /** "host:port". */
  readonly host: string;
  close(): Promise<void>;
}

export async function startDependency(listener: RequestListener): Promise<Dependency> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: `http://${host}`,
    host,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
