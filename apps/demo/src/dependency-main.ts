import { Dependency } from './dependency.js';

const [port = '9400', ...services] = process.argv.slice(2);
const dependency = new Dependency(services);

try {
  const listening = await dependency.listen(Number(port));
  process.stdout.write(`${JSON.stringify({ msg: 'listening', port: listening })}\n`);
} catch (error) {
  const message =
    (error as NodeJS.ErrnoException).code === 'EADDRINUSE' ? `port ${port} is taken` : String(error);
  process.stderr.write(`The demo's dependency could not start: ${message}.\n`);
  process.exitCode = 1;
}

function stop(): void {
  dependency.close();
  process.stdin.destroy();
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop);
// The parent holds the other end: when it is gone, however it went, so is this process.
process.stdin.on('end', stop).on('error', stop).resume();
