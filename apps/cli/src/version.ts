import { readFileSync } from 'node:fs';
import type { Io } from './io.js';
import { EXIT } from './command-error.js';

/** Of this command. */
export function clientVersion(): string {
  const file = new URL('../package.json', import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

/** `bulwark version`: this command's, and with a server also the server's. */
export async function version(
  options: { readonly server: string | undefined; readonly format: string | undefined },
  io: Io,
): Promise<number> {
  const client = clientVersion();
  const server = options.server === undefined ? undefined : await serverVersion(options.server, io);
  if (options.format === 'json' || options.format === 'yaml') {
    const { documentText } = await import('./output/documents.js');
    io.out(
      await documentText(
        { client, node: process.version, ...(server === undefined ? {} : { server }) },
        options.format,
      ),
    );
    return EXIT.ok;
  }
  io.out(`Bulwark ${client} (Node ${process.versions.node})\n`);
  if (server !== undefined) io.out(`Server  ${server}\n`);
  return EXIT.ok;
}

async function serverVersion(url: string, io: Io): Promise<string> {
  const { ApiClient } = await import('./client/api-client.js');
  const api = new ApiClient(url, io);
  try {
    const answer = (await api.json('/version', { method: 'GET' })) as {
      gitVersion?: string;
      version?: string;
    };
    return answer.gitVersion ?? answer.version ?? 'of unknown version';
  } finally {
    api.close();
  }
}
