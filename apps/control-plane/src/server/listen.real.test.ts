import { once } from 'node:events';
import { createServer } from 'node:net';
import { openStore } from '@bulwark/store';
import { createLogger } from '@bulwark/telemetry';
import { temporaryDirectory } from '@bulwark/testing';
import { expect, it } from 'vitest';
import { readConfig } from '../config/server-config.js';
import { quietDecider } from '../fleet/quiet-decider.js';
import { startReplica } from './replica.js';

it('a port that is taken is told once, by who starts the server, in words of its own', async () => {
  const directory = temporaryDirectory('taken');
  const other = createServer().listen(0, '127.0.0.1');
  try {
    await once(other, 'listening');
    const address = other.address();
    const port = address !== null && typeof address === 'object' ? address.port : 0;
    const result = readConfig(['--http', `127.0.0.1:${port}`, '--grpc', '127.0.0.1:0'], {});
    if (result.kind !== 'config') throw new Error(JSON.stringify(result));
    const log: string[] = [];
    const logger = createLogger({
      name: 'test',
      level: 'info',
      format: 'json',
      write: (line) => log.push(line),
    });
    const store = await openStore(`file:${directory.path}`);
    const started = startReplica({ config: result.config, store, logger, createDecider: quietDecider });
    await expect(started).rejects.toThrow(`127.0.0.1:${port} is taken by another process`);
    expect(log).toEqual([]);
  } finally {
    other.close();
    directory.remove();
  }
});
