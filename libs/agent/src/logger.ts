/** Where the SDK writes: fields first, then a sentence, so that a pino logger fits as it is. No secrets among the fields. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** What a service gets that names no logger: warnings and errors on stderr, one JSON object a line. */
export const stderrLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: (fields, message) => write('warn', fields, message),
  error: (fields, message) => write('error', fields, message),
};

export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

function write(level: string, fields: object, message: string): void {
  const line = { time: new Date().toISOString(), level, name: 'bulwark', msg: message, ...fields };
  process.stderr.write(`${JSON.stringify(line)}\n`);
}
