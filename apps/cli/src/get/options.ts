import { UsageError } from '../command-error.js';

export type Format = 'table' | 'wide' | 'json' | 'yaml' | 'name';
const FORMATS: readonly Format[] = ['table', 'wide', 'json', 'yaml', 'name'];

export interface GetOptions {
  readonly allNamespaces: boolean;
  readonly selector?: string;
  readonly fieldSelector?: string;
  readonly format: Format;
  readonly watch: boolean;
  readonly watchOnly: boolean;
  readonly watchEvents: boolean;
  readonly headers: boolean;
  readonly showLabels: boolean;
  /** Labels shown as columns. */
  readonly labelColumns: readonly string[];
  /** A path such as ".status.calls.perSecond". */
  readonly sortBy?: string;
}

export function parseFormat(text: string): Format {
  const format = FORMATS.find((one) => one === text);
  if (format === undefined) throw new UsageError(`-o ${text} is not known`, `Formats: ${FORMATS.join(', ')}`);
  return format;
}
