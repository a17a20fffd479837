import { parse } from 'yaml';
import { OPTIONS, type Flag, type Option } from './option-table.js';

/** A value as someone wrote it, and where: for messages. */
export interface Given {
  readonly values: readonly string[];
  readonly from: string;
}

export interface Sources {
  readonly given: ReadonlyMap<Flag, Given>;
  readonly help: boolean;
  readonly problems: readonly string[];
}

type Found = Map<Flag, Given>;
const MAX_FILE_BYTES = 1024 * 1024;

/** Reads flags, environment and file; the first of them that names an option wins. Problems of all three are kept. */
export function readSources(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  readFile: (path: string) => string,
): Sources {
  const problems: string[] = [];
  const { flags, help } = fromFlags(argv, problems);
  const environment = fromEnvironment(env);
  const path = (flags.get('config') ?? environment.get('config'))?.values[0];
  const file = path === undefined ? new Map<Flag, Given>() : fromFile(path, readFile, problems);
  return { given: new Map([...file, ...environment, ...flags]), help, problems };
}

function find(flag: string): (Option & { readonly flag: Flag }) | undefined {
  return OPTIONS.find((option) => option.flag === flag);
}

function fromFlags(argv: readonly string[], problems: string[]): { flags: Found; help: boolean } {
  const flags: Found = new Map();
  let help = false;
  for (let index = 0; index < argv.length; index += 1) {
    const word = argv[index] ?? '';
    if (word === '--help' || word === '-h') {
      help = true;
      continue;
    }
    const [, name = '', inline] = /^--([^=]+)(?:=(.*))?$/s.exec(word) ?? [];
    const option = find(name);
    if (option === undefined) {
      problems.push(name === '' ? `"${word}" is not an option` : `--${name} is unknown${hint(name)}`);
      continue;
    }
    const value = option.kind === 'switch' ? (inline ?? 'true') : (inline ?? argv[++index]);
    if (value === undefined || (inline === undefined && value.startsWith('--'))) {
      problems.push(`--${name} needs a value: --${name} ${option.placeholder ?? ''}`);
      if (value !== undefined) index -= 1;
      continue;
    }
    add(flags, option, { values: [value], from: `--${name}` }, problems);
  }
  return { flags, help };
}

function add(found: Found, option: Option & { flag: Flag }, given: Given, problems: string[]): void {
  const before = found.get(option.flag);
  if (before !== undefined && option.kind !== 'list') problems.push(`${given.from} is given twice`);
  found.set(option.flag, { values: [...(before?.values ?? []), ...given.values], from: given.from });
}

function fromEnvironment(env: Readonly<Record<string, string | undefined>>): Found {
  const found: Found = new Map();
  for (const option of OPTIONS) {
    const name = `BULWARK_${option.flag.toUpperCase().replaceAll('-', '_')}`;
    const value = env[name];
    if (value === undefined || value === '') continue;
    found.set(option.flag, { values: option.kind === 'list' ? value.split(',') : [value], from: name });
  }
  return found;
}

function fromFile(path: string, readFile: (path: string) => string, problems: string[]): Found {
  const found: Found = new Map();
  for (const [key, value] of Object.entries(readDocument(path, readFile, problems))) {
    const option = find(key);
    const from = `"${key}" in ${path}`;
    if (option === undefined || key === 'config') problems.push(`${from} is unknown${hint(key)}`);
    else if (Array.isArray(value) && option.kind === 'list')
      found.set(option.flag, { values: value.map(String), from });
    else if (['string', 'number', 'boolean'].includes(typeof value))
      found.set(option.flag, { values: [String(value)], from });
    else problems.push(`${from} must be ${option.kind === 'list' ? 'a list of texts' : 'one value'}`);
  }
  return found;
}

function readDocument(path: string, readFile: (path: string) => string, problems: string[]): object {
  try {
    const text = readFile(path);
    if (text.length > MAX_FILE_BYTES) throw new Error('it is larger than 1 MiB');
    const document: unknown = parse(text, { maxAliasCount: 10 });
    if (document === null) return {};
    if (typeof document === 'object' && !Array.isArray(document)) return document;
    throw new Error('it must be a map of options');
  } catch (error) {
    problems.push(`--config ${path}: ${error instanceof Error ? error.message : String(error)}`);
    return {};
  }
}

/** The known option within two edits of an unknown one. */
function hint(name: string): string {
  const near = OPTIONS.map(({ flag }) => ({ flag, edits: distance(name, flag) }))
    .filter(({ edits }) => edits <= 2)
    .sort((a, b) => a.edits - b.edits)[0];
  return near === undefined ? '' : `; did you mean --${near.flag}?`;
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
