import type { Host } from '@bulwark/resilience';
import { RefusedError } from './agent-error.js';
import { readBootstrap } from './bootstrap-file.js';
import { Bulwark } from './bulwark.js';
import { Bypass } from './bypass.js';
import { BypassFile } from './bypass-file.js';
import { completeOptions, type CompleteOptions, type ConnectOptions } from './connect-options.js';
import { emptySnapshot } from './snapshot.js';
import { SnapshotKeeper } from './snapshot-keeper.js';
import { SystemHost } from './system-host.js';

/**
 * Starts this process's agent. Resolves as soon as policies are known: from disk or the bootstrap file at once, else
 * from the control plane, else after `startWaitMs` without any: calls then pass under the caller's deadline alone
 * until policies arrive, and readiness says "no policy". An absent control plane is no error.
 * Throws `ArgumentError` for arguments that can never work, `RefusedError` with `failOnRefusal` only.
 */
export async function connect(options: ConnectOptions): Promise<Bulwark> {
  const complete = completeOptions(options);
  warnOfPlainText(complete);
  const system = new SystemHost();
  const host: Host = options.host ?? system;
  const keeper =
    complete.stateDir === undefined
      ? undefined
      : new SnapshotKeeper({ ...complete, directory: complete.stateDir });
  const kept = await keeper?.load();
  // A bootstrap file that cannot be used is an error even where it is not needed today: it will be needed one day.
  const bootstrap =
    complete.bootstrap === undefined
      ? undefined
      : await readBootstrap(complete.bootstrap, complete.namespace);
  const bypass = new Bypass({
    nowMs: host.nowMs,
    unixMs: Date.now,
    logger: complete.logger,
    file: complete.bypassFile === undefined ? undefined : new BypassFile(complete.bypassFile),
  });
  await bypass.start();
  const bulwark = new Bulwark({
    options: complete,
    host,
    bypass,
    keeper,
    initial: kept?.snapshot ?? bootstrap ?? emptySnapshot,
    savedAtUnixMs: kept?.savedAtUnixMs,
    onEvent: options.onEvent,
    release: () => system.release(),
  });
  const known = kept !== undefined || bootstrap !== undefined;
  const { failOnRefusal, startWaitMs } = complete;
  const news = await bulwark.start(
    ({ kind }) =>
      kind === 'policies' ||
      (known && (kind === 'welcome' || kind === 'unreachable')) ||
      (failOnRefusal && kind === 'refused'),
    (known && !failOnRefusal) || complete.addresses.length === 0 ? 0 : startWaitMs,
  );
  if (news?.kind !== 'refused') return bulwark;
  await bulwark.close();
  throw new RefusedError(news.refusal);
}

/** There is no TLS to the control plane yet; on this machine alone that is nobody's business. */
function warnOfPlainText({ addresses, logger }: CompleteOptions): void {
  const beyond = addresses.filter((address) => !/^(localhost|127\.[\d.]+|\[::1\]):/.test(address));
  if (beyond.length === 0) return;
  logger.warn(
    { addresses: beyond.join(',') },
    'policies and verdicts come over plain gRPC, without credentials',
  );
}
