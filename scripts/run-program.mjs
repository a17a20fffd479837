// Runs one built program to its end as if it were this process. Plain Node 20, no dependencies.
import { spawn } from 'node:child_process';
import { childEnvironment, nodePath, root } from './prepare.mjs';

const LOOK_EVERY_MS = 300;
const parent = process.ppid;
const byNpm = process.env.npm_lifecycle_event !== undefined;

/**
 * Ends this process with the program's exit code. Every signal is passed on, whether the program had it from the
 * terminal or the process group already or not: it takes two that come together for one. The channel ("ipc") tells the
 * program when this process is gone, however it went.
 */
export function runProgram(args) {
  const child = spawn(nodePath(), args, {
    cwd: root,
    env: childEnvironment(),
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  if (byNpm) whenOrphaned(() => child.kill('SIGTERM'));
  child.on('error', (error) => {
    console.error(error.message);
    process.exit(1);
  });
  child.on('exit', (code, signal) => process.exit(code ?? (signal === 'SIGINT' ? 130 : 1)));
}

/** npm hands its SIGTERM to the shell that it runs scripts by; that shell ends, and tells nobody. */
function whenOrphaned(end) {
  const looking = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(looking);
    end();
  }, LOOK_EVERY_MS);
  looking.unref();
}
