// npm start: installs, builds, and starts the demo. `npm start -- --tour` plays the whole story once.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { childEnvironment, nodePath, prepare, root } from './prepare.mjs';

prepare();
const child = spawn(nodePath(), [join(root, 'apps/demo/dist/main.js'), ...process.argv.slice(2)], {
  cwd: root,
  env: childEnvironment(),
  stdio: 'inherit',
});
// A terminal's Ctrl-C reaches the child by itself; a signal sent to this process alone is passed on.
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    if (signal === 'SIGTERM' || !process.stdin.isTTY) child.kill(signal);
  });
}
child.on('exit', (code, signal) => process.exit(code ?? (signal === 'SIGINT' ? 130 : 1)));
