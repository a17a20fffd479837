import { nearestWord } from '@bulwark/policy';

/** What an option must be, in words and as a test. */
export interface Shape {
  readonly expected: string;
  readonly fits: (value: unknown) => boolean;
}

export const aString: Shape = { expected: 'a string', fits: (value) => typeof value === 'string' };
export const aNumber: Shape = {
  expected: 'a number',
  fits: (value) => typeof value === 'number' && !Number.isNaN(value),
};
export const aBoolean: Shape = { expected: 'true or false', fits: (value) => typeof value === 'boolean' };
export const aFunction: Shape = { expected: 'a function', fits: (value) => typeof value === 'function' };
export const anObject: Shape = { expected: 'an object', fits: isObject };

/** An object that has these methods. */
export function withMethods(...methods: readonly string[]): Shape {
  return {
    expected: `an object with the methods ${methods.join(', ')}`,
    fits: (value) => isObject(value) && missingMethods(value, methods).length === 0,
  };
}

/**
 * Looks at options given by a program that may have no types: those that are none, with the nearest that is, and those that are
 * no such thing as they must be. Undefined counts as absent.
 */
export function shapeProblems(
  options: Readonly<Record<string, unknown>>,
  shapes: Readonly<Record<string, Shape>>,
): { readonly option: string; readonly problem: string }[] {
  const known = Object.keys(shapes);
  return Object.entries(options).flatMap(([option, value]) => {
    const shape = Object.hasOwn(shapes, option) ? shapes[option] : undefined;
    if (shape === undefined) return [{ option, problem: unknownOption(option, known) }];
    if (value === undefined || shape.fits(value)) return [];
    return [{ option, problem: `${option} ${quote(value)} must be ${shape.expected}` }];
  });
}

function unknownOption(option: string, known: readonly string[]): string {
  const near = nearestWord(option, known);
  const meant = near === undefined ? `known are ${known.join(', ')}` : `did you mean ${near}?`;
  return `there is no option ${JSON.stringify(option)}: ${meant}`;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function missingMethods(value: Record<string, unknown>, methods: readonly string[]): readonly string[] {
  return methods.filter((method) => typeof value[method] !== 'function');
}

const MAX_QUOTED = 80;

/** A value as a message shows it; never a throw. */
export function quote(value: unknown): string {
  if (value === undefined) return '(absent)';
  if (typeof value === 'function') return '(a function)';
  if (value instanceof Error) return `(an error: ${value.message})`;
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'symbol')
    return String(value);
  try {
    const text = JSON.stringify(value) ?? '(nothing)';
    return text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text;
  } catch {
    return '(an object)';
  }
}
