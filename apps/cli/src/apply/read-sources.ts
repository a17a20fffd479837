import { readdir, readFile, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { PolicySource } from '@bulwark/policy';
import { CommandError, UsageError } from '../command-error.js';
import { readAll, type Io } from '../io.js';

/** Nothing of that size is a file of policies; it is not even read. */
const MAX_FILE_BYTES = 64 * 1024 * 1024;
const EXTENSIONS: ReadonlySet<string> = new Set(['.yaml', '.yml', '.json']);

export interface SourceOptions {
  /** Files, directories, or "-" for stdin. */
  readonly files: readonly string[];
  /** Directories in directories too. */
  readonly recursive: boolean;
}

/** The texts that -f names, in order; the files of a directory by name. @throws CommandError */
export async function readSources(
  { files, recursive }: SourceOptions,
  io: Io,
): Promise<readonly PolicySource[]> {
  if (files.length === 0) throw new UsageError('say what to read: -f FILE, -f DIRECTORY or -f -');
  const paths: string[] = [];
  for (const file of files) paths.push(...(file === '-' ? ['-'] : await pathsOf(file, recursive)));
  const sources: PolicySource[] = [];
  for (const path of new Set(paths)) {
    if (path !== '-') sources.push({ name: path, text: await reading(path, () => readFile(path, 'utf8')) });
    else sources.push({ name: 'stdin', text: await readAll(io.stdin(), MAX_FILE_BYTES) });
  }
  return sources;
}

async function pathsOf(path: string, recursive: boolean): Promise<string[]> {
  const found = await reading(path, () => stat(path));
  if (found.size > MAX_FILE_BYTES) {
    throw new CommandError(`error: ${path} has ${found.size} bytes; a file of policies has at most 1 MiB`);
  }
  if (!found.isDirectory()) return [path];
  const files = await filesIn(path, recursive);
  if (files.length > 0) return files;
  throw new CommandError(`error: there is no .yaml, .yml or .json file in ${path}`, {
    ...(recursive ? {} : { hint: 'Directories in it are read with -R.' }),
  });
}

async function filesIn(directory: string, recursive: boolean): Promise<string[]> {
  const entries = await reading(directory, () => readdir(directory));
  const files: string[] = [];
  for (const entry of entries.sort()) {
    const path = join(directory, entry);
    if ((await reading(path, () => stat(path))).isDirectory()) {
      if (recursive) files.push(...(await filesIn(path, recursive)));
    } else if (EXTENSIONS.has(extname(entry).toLowerCase())) files.push(path);
  }
  return files;
}

async function reading<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw new CommandError(`error: ${path} cannot be read: ${reasonText(error as NodeJS.ErrnoException)}`, {
      cause: error,
    });
  }
}

function reasonText(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'ENOENT':
      return 'there is no such file or directory';
    case 'EACCES':
    case 'EPERM':
      return 'permission denied';
    case 'ELOOP':
      return 'its symbolic links go in a circle';
    default:
      return error.message;
  }
}
