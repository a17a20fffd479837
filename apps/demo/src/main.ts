import { runDemo } from './demo.js';
import { playTour } from './tour.js';

const HELP = `npm start               a control plane, a small fleet, and a dependency that one command breaks
npm start -- --tour     the whole story once, measured; exit code 0 when every step held

Options of the demo: --http HOST:PORT (127.0.0.1:9443), --grpc HOST:PORT (127.0.0.1:9444),
--demo-port PORT (9400), --store URL (file:.bulwark)
`;

const interruption = new AbortController();
let interruptions = 0;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    interruptions += 1;
    if (interruptions > 1) process.exit(130);
    interruption.abort();
  });
}

const write = (line: string) => void process.stdout.write(`${line}\n`);
const args = process.argv.slice(2);
if (args.includes('--help') || args.includes('-h')) write(HELP);
else if (args.includes('--tour')) process.exitCode = await playTour(write, interruption.signal);
else process.exitCode = await runDemo(args, write, interruption.signal);
