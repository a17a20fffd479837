import { readdirSync, readFileSync } from 'node:fs';

/** The kernel's clock ticks a second, as Linux has them for programs on all its platforms. */
const TICKS_PER_SECOND = 100;

/** Processor seconds that a process has used; NaN where the system does not tell (it is not Linux). */
export function processorSeconds(pid: number): number {
  try {
    let ticks = 0;
    for (const each of [pid, ...childrenOf(pid)]) {
      // After the name, which may hold anything; utime and stime are fields 14 and 15.
      const fields = readFileSync(`/proc/${each}/stat`, 'latin1')
        .replace(/^.*\) /s, '')
        .split(' ');
      ticks += Number(fields[11]) + Number(fields[12]);
    }
    return ticks / TICKS_PER_SECOND;
  } catch {
    return NaN;
  }
}

function childrenOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1')
      .trim()
      .split(' ')
      .filter(Boolean)
      .map(Number),
  );
}
