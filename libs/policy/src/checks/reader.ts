import { parseDuration } from '../duration.js';
import { problem, type Path, type Problem } from '../problem.js';
import { at } from '../structure.js';

/** Reads well-formed values; anything else is undefined. */
export class Reader {
  constructor(private readonly root: unknown) {}
  any(...path: Path): unknown {
    return at(this.root, path);
  }
  ms(...path: Path): number | undefined {
    return parseDuration(this.any(...path));
  }
  whole(...path: Path): number | undefined {
    const value = this.any(...path);
    return typeof value === 'number' && Number.isInteger(value) ? value : undefined;
  }
  text(...path: Path): string | undefined {
    const value = this.any(...path);
    return typeof value === 'string' ? value : undefined;
  }
  list(...path: Path): readonly unknown[] {
    const value = this.any(...path);
    return Array.isArray(value) ? (value as unknown[]).slice(0, 64) : [];
  }
  has(...path: Path): boolean {
    return this.any(...path) !== undefined;
  }
}

/** Refuses the value at a path. */
export function refuse(read: Reader, path: Path, message: string, allowed: string): Problem {
  return problem(path, 'invalid', { message, allowed, value: read.any(...path) });
}

/** A duration with its text and whether it was typed or is the default. */
export function given(
  read: Reader,
  path: Path,
  fallback: string,
): { readonly ms: number; readonly text: string } | undefined {
  if (!read.has(...path)) return { ms: parseDuration(fallback) ?? 0, text: `${fallback}, the default` };
  const ms = read.ms(...path);
  return ms === undefined ? undefined : { ms, text: read.text(...path) ?? '' };
}
