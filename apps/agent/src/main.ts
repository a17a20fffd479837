import { runSidecar } from './run-sidecar.js';

process.exit(await runSidecar(process.argv.slice(2), process.env));
