import { pino, type DestinationStream } from 'pino';
import { humanLine } from './human-line.js';

/** What the apps log through: fields first, then a sentence in lower case. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** A logger whose lines all carry `fields`. */
  child(fields: object): Logger;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';
/** "auto" is text where stderr is a terminal, else JSON. */
export type LogFormat = 'json' | 'text' | 'auto';

export interface LoggerOptions {
  /** Stands in every line as "name". */
  readonly name: string;
  /** Default "info". */
  readonly level?: LogLevel;
  /** Default "auto". */
  readonly format?: LogFormat;
  /** Where lines go; default stderr. Each call gets one whole line with its end. */
  readonly write?: (line: string) => void;
}

/** One line an event. Errors under `err` keep message, code and stack; a line is written before the call returns. */
export function createLogger(options: LoggerOptions): Logger {
  const { name, level = 'info', format = 'auto' } = options;
  const asText = format === 'text' || (format === 'auto' && process.stderr.isTTY);
  return pino(
    { name, level, base: { name }, timestamp: pino.stdTimeFunctions.isoTime },
    destination(asText, options.write),
  );
}

function destination(asText: boolean, write: LoggerOptions['write']): DestinationStream {
  // Synchronous: the last line before an exit is the one that matters.
  const sink = write ?? stderrLine();
  return { write: (line) => sink(asText ? humanLine(line) : line) };
}

function stderrLine(): (line: string) => void {
  const stream = pino.destination({ dest: 2, sync: true });
  return (line) => stream.write(line);
}
