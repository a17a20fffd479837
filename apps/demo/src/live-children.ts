import type { ChildProcess } from 'node:child_process';

const living = new Set<ChildProcess>();

/** Every process that the demo starts; it is forgotten when it ends. */
export function keepTrackOf<T extends ChildProcess>(child: T): T {
  living.add(child);
  child.once('exit', () => living.delete(child));
  child.once('error', () => {
    if (child.pid === undefined) living.delete(child);
  });
  return child;
}

/** SIGKILL to all that live: for when nothing can be waited for any more. */
export function killChildren(): void {
  for (const child of living) child.kill('SIGKILL');
}
