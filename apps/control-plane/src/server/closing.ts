/** Resolves with whether `work` ended within `withinMs`; never rejects for lateness. */
export async function within(withinMs: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), withinMs);
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Looks every 20 ms until `holds` or the time is over. */
export async function waitUntil(holds: () => boolean, withinMs: number): Promise<boolean> {
  const until = performance.now() + withinMs;
  while (!holds()) {
    if (performance.now() >= until) return false;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return true;
}
