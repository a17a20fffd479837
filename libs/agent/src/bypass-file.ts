import { open, stat } from 'node:fs/promises';
import { readBypassText, type ReadBypass } from './bypass-text.js';

/** More than a duration and a sentence is no bypass file. */
const MAX_BYTES = 4_096;

export type BypassNews = ReadBypass | { readonly kind: 'absent' } | { readonly kind: 'unchanged' };

/** Looks at one file. What was read once is not read again until the file changes: the wall clock then plays no part. */
export class BypassFile {
  readonly path: string;
  readonly #unixMs: () => number;
  /** What the last answer was about; undefined = there was no file. */
  #seen: string | undefined;

  constructor(path: string, unixMs: () => number = Date.now) {
    this.path = path;
    this.#unixMs = unixMs;
  }

  /** Never rejects. */
  async look(): Promise<BypassNews> {
    try {
      const { mtimeMs, size, ino, isFile } = await describe(this.path);
      const now = `${ino}/${mtimeMs}/${size}`;
      if (now === this.#seen) return { kind: 'unchanged' };
      this.#seen = now;
      if (!isFile) return { kind: 'unusable', problem: 'it is no file' };
      if (size > MAX_BYTES) return { kind: 'unusable', problem: `${size} bytes are more than ${MAX_BYTES}` };
      return readBypassText(await read(this.path), mtimeMs, this.#unixMs());
    } catch (error) {
      return this.#failed(error);
    }
  }

  #failed(error: unknown): BypassNews {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    if (code === 'ENOENT' || code === 'ENOTDIR') {
      const before = this.#seen;
      this.#seen = undefined;
      return before === undefined ? { kind: 'unchanged' } : { kind: 'absent' };
    }
    if (this.#seen === code) return { kind: 'unchanged' };
    this.#seen = code;
    return { kind: 'unusable', problem: `it cannot be read: ${code}` };
  }
}

async function describe(path: string) {
  const found = await stat(path);
  return { mtimeMs: found.mtimeMs, size: found.size, ino: found.ino, isFile: found.isFile() };
}

async function read(path: string): Promise<string> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_BYTES), 0, MAX_BYTES, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}
