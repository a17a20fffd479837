import { openStore, type Store } from '@bulwark/store';
import { createLogger } from '@bulwark/telemetry';
import { readConfig } from '../config/server-config.js';
import type { CreateDecider } from '../fleet/decider-host.js';
import { startReplica, type Replica } from '../server/replica.js';

export interface InProcessOptions {
  /** "file:DIR" or "etcd:URL". */
  readonly store: string;
  readonly createDecider: CreateDecider;
  /** More flags of the server. */
  readonly args?: readonly string[];
  /** Wraps the opened store, to make it fail. */
  readonly wrap?: (store: Store) => Store;
}

export interface InProcessReplica extends Replica {
  /** Lines of its log so far. */
  readonly log: readonly string[];
}

/** A replica on free ports of this process, with its log kept: for tests and tools. */
export async function startInProcess(options: InProcessOptions): Promise<InProcessReplica> {
  const args = [
    '--store',
    options.store,
    '--http',
    '127.0.0.1:0',
    '--grpc',
    '127.0.0.1:0',
    ...(options.args ?? []),
  ];
  const result = readConfig(args, {});
  if (result.kind !== 'config') throw new Error(JSON.stringify(result));
  const log: string[] = [];
  const logger = createLogger({
    name: 'in-process',
    level: 'debug',
    format: 'json',
    write: (line) => log.push(line),
  });
  const opened = await openStore(options.store);
  const store = options.wrap?.(opened) ?? opened;
  const replica = await startReplica({
    config: result.config,
    store,
    logger,
    createDecider: options.createDecider,
  });
  const { http, grpc, parts } = replica;
  return { http, grpc, parts, log, stop: () => replica.stop() };
}
