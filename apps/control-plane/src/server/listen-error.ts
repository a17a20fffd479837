import { formatAddress, type Address } from '../config/server-config.js';

/** Starting failed for a reason that a person can do something about. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

/** Says which address cannot be had, why, and by which flag to change it. */
export function listenError(error: Error, address: Address, flag: string): StartError {
  const text = formatAddress(address);
  const code = (error as NodeJS.ErrnoException).code ?? '';
  const says = (word: string): boolean => code === word || error.message.includes(word);
  const options = { cause: error };
  if (says('EADDRINUSE')) {
    return new StartError(
      `${text} is taken by another process; stop it, or choose another with ${flag} HOST:PORT`,
      options,
    );
  }
  if (says('EACCES')) {
    return new StartError(
      `this user may not listen on ${text}; choose a port above 1023 with ${flag} HOST:PORT`,
      options,
    );
  }
  if (says('EADDRNOTAVAIL') || says('ENOTFOUND')) {
    return new StartError(
      `${text} is no address of this machine; choose another with ${flag} HOST:PORT`,
      options,
    );
  }
  return new StartError(`cannot listen on ${text} (${flag}): ${error.message}`, options);
}
