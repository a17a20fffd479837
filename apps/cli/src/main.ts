/** The `bulwark` command. `server` and `agent` own their process: their flags, their signals, their end. */
const [word, ...rest] = process.argv.slice(2);

if (word === 'server' || word === 'agent') {
  const { startAgent, startServer } = await import('./start-program.js');
  process.exit(await (word === 'server' ? startServer : startAgent)(rest, process.env));
}
const { processIo } = await import('./io.js');
const { runCommand } = await import('./run.js');
const io = processIo();
process.exitCode = await runCommand(process.argv.slice(2), io);
io.dispose();
