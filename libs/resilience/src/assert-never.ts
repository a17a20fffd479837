/** Closes an exhaustive switch: reaching it means the types lied. */
export function assertNever(value: never): never {
  throw new Error(`unexpected ${JSON.stringify(value)}`);
}
