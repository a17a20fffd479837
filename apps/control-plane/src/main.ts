import { runServer } from './server/run-server.js';

process.exit(await runServer(process.argv.slice(2)));
