import { mkdir } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/**
 * Makes a directory and its missing parents; one that is there stays as it is. Tries each of them twice at most: Node's own
 * recursive way tries again for ever where the file system says "no such file" of a parent that is there, as /proc does.
 * Rejects with the file system's error.
 */
export async function makeDirectory(path: string, mode: number): Promise<void> {
  const missing: string[] = [];
  let at = resolve(path);
  while (!(await made(at, mode)) && dirname(at) !== at) {
    missing.push(at);
    at = dirname(at);
  }
  for (const directory of missing.reverse()) {
    await mkdir(directory, { mode }).catch((error: unknown) => {
      // Somebody else was quicker.
      if (codeOf(error) !== 'EEXIST') throw error;
    });
  }
}

/** False = its parent is missing. */
async function made(path: string, mode: number): Promise<boolean> {
  try {
    await mkdir(path, { mode });
    return true;
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EEXIST') return true;
    if (code === 'ENOENT') return false;
    throw error;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
