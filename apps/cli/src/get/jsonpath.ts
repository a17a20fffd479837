import { UsageError } from '../command-error.js';
import { valueAt } from './sort.js';

const EVERY = Symbol('every member');

/** One step into a value: a field, a place of a list (from its end if negative), or every member. */
type Step = string | number | typeof EVERY;

type Part =
  | { readonly text: string }
  | { readonly steps: readonly Step[] }
  | { readonly each: Template; readonly of: readonly Step[] };
export type Template = readonly Part[];

const EXAMPLE = `Example: -o jsonpath='{range .items[*]}{.metadata.name}{"\\t"}{.status.state}{"\\n"}{end}'`;

/**
 * The part of kubectl's JSONPath that scripts use: text, {.a.b}, {.a[0]}, {.a[*].b}, {.a['b.c']}, {"\n"} and
 * {range PATH}…{end}. Filters and unions are refused, not ignored.
 */
export function parseTemplate(text: string): Template {
  const tokens = [...text.matchAll(/\{((?:"(?:[^"\\]|\\.)*"|[^{}"])*)\}|([^{}]+)|(.)/gs)];
  const { template, rest } = parseParts(tokens.map((match) => tokenOf(match, text)));
  if (rest.length > 0) throw wrong(text, '{end} without {range}');
  return template;
}

export function renderTemplate(template: Template, value: unknown): string {
  return template
    .map((part) => {
      if ('text' in part) return part.text;
      if ('each' in part)
        return valuesAt(value, part.of)
          .map((one) => renderTemplate(part.each, one))
          .join('');
      return valuesAt(value, part.steps).map(textOf).join(' ');
    })
    .join('');
}

type Token = { readonly text: string } | { readonly steps: readonly Step[]; readonly range: boolean } | 'end';

function tokenOf([whole, inner, plain]: RegExpMatchArray, text: string): Token {
  if (plain !== undefined) return { text: plain };
  if (inner === undefined) throw wrong(text, `a single ${whole}`);
  const trimmed = inner.trim();
  if (trimmed === 'end') return 'end';
  if (trimmed.startsWith('"')) {
    try {
      return { text: JSON.parse(trimmed) as string };
    } catch {
      throw wrong(text, trimmed);
    }
  }
  const range = /^range\s+/.exec(trimmed)?.[0];
  return { steps: parseSteps(trimmed.slice(range?.length ?? 0), text), range: range !== undefined };
}

function parseParts(tokens: readonly Token[]): {
  readonly template: Template;
  readonly rest: readonly Token[];
} {
  const template: Part[] = [];
  let left = tokens;
  for (;;) {
    const [token, ...rest] = left;
    if (token === undefined || token === 'end') return { template, rest: left };
    left = rest;
    if ('text' in token || !token.range) template.push(token);
    else {
      const inner = parseParts(rest);
      if (inner.rest[0] !== 'end') throw new UsageError('{range} without {end}', EXAMPLE);
      template.push({ each: inner.template, of: token.steps });
      left = inner.rest.slice(1);
    }
  }
}

function parseSteps(path: string, whole: string): readonly Step[] {
  const step = /\.?([A-Za-z_$][\w$-]*)|\.?\[(-?\d+)\]|\.?\['([^']*)'\]|(\.?\[\*\]|\.\*)/y;
  const bare = path.replace(/^[$@]/, '');
  const steps: Step[] = [];
  while (step.lastIndex < bare.length && bare !== '.') {
    const match = step.exec(bare);
    if (match === null) throw wrong(whole, `{${path}}`);
    const [, name, place, quoted, every] = match;
    steps.push(every !== undefined ? EVERY : place !== undefined ? Number(place) : (name ?? quoted ?? ''));
  }
  return steps;
}

function valuesAt(value: unknown, [step, ...rest]: readonly Step[]): readonly unknown[] {
  if (step === undefined) return value === undefined ? [] : [value];
  if (step === EVERY) {
    const members = typeof value === 'object' && value !== null ? Object.values(value) : [];
    return members.flatMap((member) => valuesAt(member, rest));
  }
  const place = typeof step === 'number' && step < 0 && Array.isArray(value) ? value.length + step : step;
  return valuesAt(valueAt(value, [place]), rest);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function wrong(text: string, what: string): UsageError {
  return new UsageError(`the template ${JSON.stringify(text)} cannot be read: ${what}`, EXAMPLE);
}
