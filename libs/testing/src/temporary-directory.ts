import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TemporaryDirectory extends Disposable {
  readonly path: string;
  /** Deletes it with all it holds. Idempotent. */
  remove(): void;
}

/** A new empty directory; `remove` it when the test ends. */
export function temporaryDirectory(name = 'test'): TemporaryDirectory {
  const path = mkdtempSync(join(tmpdir(), `bulwark-${name}-`));
  const remove = () => rmSync(path, { recursive: true, force: true, maxRetries: 3 });
  return { path, remove, [Symbol.dispose]: remove };
}
