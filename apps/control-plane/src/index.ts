export { runServer } from './server/run-server.js';
