/** What a user's function gave, as a promise: not every one is asynchronous, and not every promise is a native one. */
export function asPromise<T>(given: Promise<T> | T): Promise<T> {
  return given instanceof Promise ? given : Promise.resolve(given);
}

/** A call without a function is a mistake of the program, to be told at once and counted nowhere. */
export function notCallable(run: unknown): TypeError {
  return new TypeError(
    `a call needs the function that makes its attempts, not ${run === null ? 'null' : typeof run}`,
  );
}
