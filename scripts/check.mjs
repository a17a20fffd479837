// npm run check: the fast part of what CI runs. Every step runs, so that one answer shows all that is wrong.
import { spawnSync } from 'node:child_process';
import { childEnvironment, prepare, root } from './prepare.mjs';

prepare();
const steps = ['format', 'lint', 'boundaries', 'types', 'proto', 'unit'];
const failed = [];
for (const step of steps) {
  const started = performance.now();
  const child = spawnSync('npm', ['run', '--silent', `check:${step}`], {
    cwd: root,
    env: childEnvironment(),
    stdio: 'inherit',
  });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${child.status === 0 ? 'ok    ' : 'FAILED'} ${step} (${seconds} s)`);
  if (child.status !== 0) failed.push(step);
}
if (failed.length > 0) {
  console.log(`check failed: ${failed.join(', ')}`);
  process.exit(1);
}
