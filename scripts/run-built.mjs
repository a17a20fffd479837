// Builds what changed and runs one built program under the pinned Node: run-built.mjs FILE [ARGUMENT …]
import { prepare } from './prepare.mjs';
import { runProgram } from './run-program.mjs';

prepare();
runProgram(process.argv.slice(2));
