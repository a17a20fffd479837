import type { CompiledPolicy } from '@bulwark/policy';
import { resourceId } from '@bulwark/protocol';
import { compileResource } from './compile-resource.js';
import type { Logger } from './logger.js';
import { compileSafely, type HeldResource, type Snapshot } from './snapshot.js';
import { SnapshotFile, type StoredSnapshot } from './snapshot-file.js';

export interface KeeperOptions {
  readonly directory: string;
  readonly namespace: string;
  readonly service: string;
  readonly logger: Logger;
}

/** A disk that hangs must not hold back the acknowledgement of what is in force. */
const WRITE_PATIENCE_MS = 2_000;

/** Keeps the snapshot in force on disk, one write at a time. A failing disk is reported and is not fatal. */
export class SnapshotKeeper {
  readonly #options: KeeperOptions;
  readonly #file: SnapshotFile;
  #writing: Promise<void> = Promise.resolve();
  #latest: Snapshot<CompiledPolicy> | undefined;
  #problem: string | undefined;

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#file = new SnapshotFile(options.directory);
  }

  /** Why the last write or read failed; undefined = all is well. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** The kept snapshot; undefined = there is none, or none that can be trusted (which is reported). */
  async load(): Promise<{ snapshot: Snapshot<CompiledPolicy>; savedAtUnixMs: number } | undefined> {
    const read = await this.#file.read(this.#options);
    if (read.kind === 'absent') return undefined;
    if (read.kind === 'unusable') {
      this.#problem = `${this.#file.path}: ${read.reason}`;
      const fields = { file: this.#file.path, reason: read.reason };
      this.#options.logger.error(fields, 'the kept policies cannot be used; nothing of the file is taken');
      return undefined;
    }
    return { snapshot: this.#compile(read.snapshot), savedAtUnixMs: read.snapshot.savedAtUnixMs };
  }

  /** Resolves when the snapshot, or a newer one, is on disk, or cannot be put there. */
  async save(snapshot: Snapshot<CompiledPolicy>): Promise<void> {
    this.#latest = snapshot;
    this.#writing = this.#writing.then(() => this.#write());
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, WRITE_PATIENCE_MS);
    });
    await Promise.race([this.#writing, patience]);
    clearTimeout(timer);
  }

  async #write(): Promise<void> {
    const snapshot = this.#latest;
    // A later save has taken this one along.
    if (snapshot?.version === undefined) return;
    this.#latest = undefined;
    const { namespace, service, logger } = this.#options;
    const stored: StoredSnapshot = {
      namespace,
      service,
      version: snapshot.version,
      savedAtUnixMs: Date.now(),
      resources: [...snapshot.resources.values()].map(({ name, uid, generation, createdAtMs, object }) => ({
        ...name,
        uid,
        generation,
        createdAtMs,
        object,
      })),
    };
    try {
      await this.#file.write(stored);
      this.#problem = undefined;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (this.#problem !== reason) {
        const fields = { file: this.#file.path, reason };
        logger.error(
          fields,
          'the policies in force cannot be kept on disk; they stay in force until a restart',
        );
      }
      this.#problem = reason;
    }
  }

  #compile(stored: StoredSnapshot): Snapshot<CompiledPolicy> {
    const resources = new Map<string, HeldResource<CompiledPolicy>>();
    for (const { kind, namespace, name, ...rest } of stored.resources) {
      const raw = { name: { kind, namespace, name }, ...rest };
      const compiled = compileSafely(raw, compileResource);
      if (compiled.ok) {
        resources.set(resourceId(raw.name), { ...raw, compiled: compiled.compiled });
      } else {
        const fields = { policy: `${namespace}/${name}`, reason: compiled.reason };
        this.#options.logger.error(fields, 'a kept policy cannot be used by this version; it is left out');
      }
    }
    return { version: stored.version, resources };
  }
}
