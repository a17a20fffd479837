export type DocumentFormat = 'json' | 'yaml';

/** One object for people to read or keep; ends in a newline. The YAML writer is loaded on first use. */
export async function documentText(value: unknown, format: DocumentFormat): Promise<string> {
  if (format === 'json') return `${JSON.stringify(value, undefined, 4)}\n`;
  const { stringify } = await import('yaml');
  return stringify(value, { aliasDuplicateObjects: false, lineWidth: 0, indentSeq: false });
}
