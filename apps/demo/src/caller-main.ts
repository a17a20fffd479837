import { Caller } from './caller.js';
import { closeConnections } from './http-call.js';
import type { CallerCommand, CallerMessage, CallerSettings } from './messages.js';

const settings = JSON.parse(process.argv[2] ?? '{}') as CallerSettings;
const LOOK_EVERY_MS = 20;

const tell = (message: CallerMessage) => void process.send?.(message, undefined, undefined, () => undefined);

const callers = settings.instances.map(
  (instance, index) =>
    new Caller({
      settings,
      instance,
      // The golden ratio spreads any number of agents of one process; one agent a process begins anywhere.
      offset: settings.instances.length === 1 ? Math.random() : (index * 0.618_034) % 1,
      onState: (change) => tell({ type: 'state', ...change }),
    }),
);

let stopping = false;
async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  clearInterval(looking);
  await Promise.all(callers.map((caller) => caller.stop()));
  closeConnections();
  if (process.connected) process.disconnect();
}

process.on('message', (command: CallerCommand) => {
  switch (command.type) {
    case 'stats':
      return tell({ type: 'stats', agents: callers.flatMap((caller) => caller.stats()) });
    case 'choose':
      return callers.forEach((caller) => caller.choose(command.services));
    case 'stop':
      return void stop();
  }
});
// The parent decides when to stop: a Ctrl-C in the terminal reaches it too.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => void stop());
process.on('disconnect', () => void stop());

await Promise.all(callers.map((caller) => caller.connect()));
const looking = setInterval(() => {
  if (!callers.every((caller) => caller.hasPolicies())) return;
  clearInterval(looking);
  for (const caller of callers) caller.start();
  tell({ type: 'ready' });
}, LOOK_EVERY_MS);
