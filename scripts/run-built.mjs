// Builds what changed and runs one built program under the pinned Node: run-built.mjs FILE [ARGUMENT …]
import { spawnSync } from 'node:child_process';
import { childEnvironment, nodePath, prepare, root } from './prepare.mjs';

prepare();
const child = spawnSync(nodePath(), process.argv.slice(2), {
  cwd: root,
  env: childEnvironment(),
  stdio: 'inherit',
});
process.exit(child.status ?? 1);
