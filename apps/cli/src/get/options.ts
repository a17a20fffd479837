import { UsageError } from '../command-error.js';
import { parseTemplate, type Template } from './jsonpath.js';

const PLAIN = ['table', 'wide', 'json', 'yaml', 'name'] as const;

export type Output =
  { readonly format: (typeof PLAIN)[number] } | { readonly format: 'jsonpath'; readonly template: Template };

export interface GetOptions {
  readonly allNamespaces: boolean;
  readonly selector?: string;
  readonly fieldSelector?: string;
  readonly output: Output;
  readonly watch: boolean;
  readonly watchOnly: boolean;
  readonly watchEvents: boolean;
  /** Rows of a watch also when only their ages and live counts have changed. */
  readonly everyUpdate: boolean;
  readonly headers: boolean;
  readonly showLabels: boolean;
  /** Labels shown as columns. */
  readonly labelColumns: readonly string[];
  /** A path such as ".status.calls.perSecond". */
  readonly sortBy?: string;
}

export function parseOutput(text: string): Output {
  const template = /^jsonpath=(.*)$/s.exec(text)?.[1];
  if (template !== undefined) return { format: 'jsonpath', template: parseTemplate(template) };
  const format = PLAIN.find((one) => one === text);
  if (format !== undefined) return { format };
  throw new UsageError(`-o ${text} is not known`, `Formats: ${PLAIN.join(', ')}, jsonpath=TEMPLATE`);
}

export function isTable({ format }: Output): boolean {
  return format === 'table' || format === 'wide';
}
