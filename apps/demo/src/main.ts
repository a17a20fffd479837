import { runDemo } from './demo.js';
import { Interruption } from './interruption.js';
import { killChildren } from './live-children.js';
import { playTour } from './tour.js';

const HELP = `npm start               a control plane, a small fleet, and a dependency that one command breaks
npm start -- --tour     the whole story once, measured; exit code 0 when every step held

Options of the demo: --http HOST:PORT (127.0.0.1:9443), --grpc HOST:PORT (127.0.0.1:9444),
--demo-port PORT (9400), --store URL (file:.bulwark)
`;

// However this process ends, and whatever it still waits for: nothing that it started is left behind.
process.on('exit', killChildren);
const interruption = new Interruption(() => process.exit(130));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interruption.wish());
// Who started this is gone, or nobody reads any more; both are told once.
process.on('disconnect', () => interruption.wish());
// Listened to, but nothing to stay for.
process.channel?.unref();
process.stdout.once('error', () => interruption.wish()).on('error', () => undefined);

const write = (line: string) => void process.stdout.write(`${line}\n`);
const args = process.argv.slice(2);
if (args.includes('--help') || args.includes('-h')) write(HELP);
else if (args.includes('--tour')) process.exitCode = await playTour(write, interruption.signal);
else process.exitCode = await runDemo(args, write, interruption.signal);
