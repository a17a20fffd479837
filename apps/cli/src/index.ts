export { runCommand } from './run.js';
export { processIo, type Io } from './io.js';
