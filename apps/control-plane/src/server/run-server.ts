import { createDecider } from '@bulwark/fleet';
import { openStore, StoreError } from '@bulwark/store';
import { createLogger, startTelemetry, type Logger } from '@bulwark/telemetry';
import { usage } from '../config/option-table.js';
import { readConfig, type ServerConfig } from '../config/server-config.js';
import { StartError } from './listen-error.js';
import { startReplica, type Replica } from './replica.js';
import { VERSION } from './version.js';

const OK = 0;
const FAILED = 1;
const WRONG_USAGE = 64;

/**
 * Runs one replica until a signal ends it. @param argv the words after `bulwark server`. @returns the exit code:
 * 0 after a clean stop, 1 when it could not start or not everything was finished, 64 for wrong usage
 */
export async function runServer(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<number> {
  const result = readConfig(argv, env);
  if (result.kind === 'help') {
    process.stdout.write(usage());
    return OK;
  }
  if (result.kind === 'wrong') {
    const lines = result.problems.map((problem) => `bulwark server: ${problem}\n`).join('');
    process.stderr.write(`${lines}Try: bulwark server --help\n`);
    return WRONG_USAGE;
  }
  const { config } = result;
  const logger = createLogger({
    name: 'bulwark-server',
    level: config.logLevel,
    format: config.logFormat,
  }).child({
    replica: config.id,
  });
  const telemetry = await startTelemetry({ serviceName: 'bulwark-server', env, logger });
  try {
    return await runReplica(config, logger);
  } finally {
    await telemetry.stop();
  }
}

async function runReplica(config: ServerConfig, logger: Logger): Promise<number> {
  const ending = watchProcess(logger);
  try {
    const replica = await start(config, logger);
    if (replica === undefined) return FAILED;
    announce(replica, config, logger);
    const why = await ending.asked;
    const farewell = await replica.stop();
    const { clean, ...counts } = farewell;
    logger[clean ? 'info' : 'warn'](counts, clean ? 'stopped cleanly' : 'stopped with unfinished work');
    return clean && why === 'signal' ? OK : FAILED;
  } finally {
    ending.release();
  }
}

async function start(config: ServerConfig, logger: Logger): Promise<Replica | undefined> {
  try {
    const store = await openStore(config.store);
    return await startReplica({ config, store, logger, createDecider });
  } catch (error) {
    if (!(error instanceof StartError) && !(error instanceof StoreError)) throw error;
    const hint = error instanceof StoreError ? `--store ${config.store}: ` : '';
    logger.error(
      { code: error instanceof StoreError ? error.code : 'listen' },
      `cannot start: ${hint}${error.message}`,
    );
    return undefined;
  }
}

function announce({ http, grpc }: Replica, config: ServerConfig, logger: Logger): void {
  if (config.loopback) {
    logger.warn({}, 'plain HTTP and gRPC without credentials: for development on this machine only');
  } else {
    logger.warn({}, '--insecure-listen: anyone who reaches these ports may read and change everything');
  }
  logger.info({ http, grpc, store: config.store.split(':')[0], version: VERSION }, 'listening');
}

/** Signals and what nobody caught. The second signal ends the process at once. */
function watchProcess(logger: Logger): { asked: Promise<'signal' | 'failure'>; release: () => void } {
  let resolve: (why: 'signal' | 'failure') => void = () => undefined;
  const asked = new Promise<'signal' | 'failure'>((settle) => (resolve = settle));
  let signalled = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (signalled) process.exit(FAILED);
    signalled = true;
    logger.info({ signal }, 'asked to stop; a second signal ends at once');
    resolve('signal');
  };
  const onFailure = (error: unknown): void => {
    logger.error({ err: error }, 'an error that nobody caught; stopping');
    resolve('failure');
  };
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  process.on('unhandledRejection', onFailure).on('uncaughtException', onFailure);
  return {
    asked,
    release: () => {
      process.off('SIGTERM', onSignal).off('SIGINT', onSignal);
      process.off('unhandledRejection', onFailure).off('uncaughtException', onFailure);
    },
  };
}
