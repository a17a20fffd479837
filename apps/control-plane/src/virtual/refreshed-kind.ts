import type { Resource } from '@bulwark/views';
import type { ServedKind } from '../http/served-kind.js';
import { objectKey, type ApiObject } from '../objects/api-object.js';
import type { VirtualCollection } from './virtual-collection.js';

export interface RefreshedKindOptions {
  readonly resource: Resource;
  readonly virtual: VirtualCollection;
  /** All objects of all live replicas, and what is missing. */
  load(): Promise<{ readonly objects: readonly ApiObject[]; readonly warnings: readonly string[] }>;
}

/** While somebody watches, live counts are looked at this often. */
const EVERY_MS = 1_000;

/** A kind that is put together from replicas' memory when it is asked for, and once a second while it is watched. */
export class RefreshedKind implements ServedKind {
  readonly resource: Resource;
  readonly writes = undefined;
  private readonly virtual: VirtualCollection;
  private observers = 0;
  private timer: NodeJS.Timeout | undefined;
  private loading: Promise<readonly string[]> | undefined;
  private again = false;

  constructor(private readonly options: RefreshedKindOptions) {
    this.resource = options.resource;
    this.virtual = options.virtual;
  }

  get collection(): ServedKind['collection'] {
    return this.virtual.collection;
  }

  /** Requests that come while one is under way share the next one. */
  async refresh(): Promise<readonly string[]> {
    if (this.loading !== undefined) await this.loading;
    this.loading ??= this.load().finally(() => (this.loading = undefined));
    return this.loading;
  }

  async read(namespace: string, name: string): Promise<ApiObject | undefined> {
    await this.refresh();
    return this.collection.get(objectKey({ metadata: { namespace, name } }));
  }

  /** A version that this replica did not give out is "too old": the client lists again. */
  reach(): Promise<boolean> {
    return Promise.resolve(true);
  }

  present(object: ApiObject): ApiObject {
    return object;
  }

  knows(revision: number): boolean {
    return this.virtual.knows(revision);
  }

  observe(): () => void {
    this.observers += 1;
    this.timer ??= setInterval(() => this.refreshQuietly(), EVERY_MS);
    let done = false;
    return () => {
      if (done) return;
      done = true;
      this.observers -= 1;
      if (this.observers === 0) this.stop();
    };
  }

  /** Something happened that watchers should see now. */
  touch(): void {
    if (this.observers === 0 || this.again) return;
    this.again = true;
    queueMicrotask(() => {
      this.again = false;
      this.refreshQuietly();
    });
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private refreshQuietly(): void {
    // What fails now is told to the next one who asks; watchers see it when it works again.
    this.refresh().catch(() => undefined);
  }

  private async load(): Promise<readonly string[]> {
    const { objects, warnings } = await this.options.load();
    this.virtual.replaceAll(objects);
    return warnings;
  }
}
