import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const script = fileURLToPath(new URL('../../../scripts/servers.mjs', import.meta.url));
const found = new Map<string, Promise<string>>();

/**
 * The path of a server or tool that scripts/servers.mjs knows (etcd, etcdctl, strace, promtool, …): from the PATH, else
 * fetched once into the repository's cache folder. Rejects with an error that says what to install.
 */
export function serverBinary(name: string): Promise<string> {
  let path = found.get(name);
  if (path === undefined) {
    path = promisify(execFile)(process.execPath, [script, name]).then(
      ({ stdout }) => stdout.trim(),
      (error: Error & { stderr?: string }) => {
        throw new Error(error.stderr?.trim() || error.message, { cause: error });
      },
    );
    found.set(name, path);
  }
  return path;
}
