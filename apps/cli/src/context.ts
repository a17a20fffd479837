import type { ApiClient } from './client/api-client.js';
import type { Io } from './io.js';
import type { Paint } from './output/colour.js';

/** What every command that asks the server works with. */
export interface Context {
  readonly io: Io;
  readonly api: ApiClient;
  readonly paint: Paint;
  /** As given with -n; undefined = not given. */
  readonly givenNamespace: string | undefined;
  /** The namespace that counts: as given, else "default". */
  readonly namespace: string;
}
