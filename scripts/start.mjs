// npm start: installs, builds, and starts the demo. `npm start -- --tour` plays the whole story once.
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';
import { runProgram } from './run-program.mjs';

prepare();
runProgram([join(root, 'apps/demo/dist/main.js'), ...process.argv.slice(2)]);
