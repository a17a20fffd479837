// The dependency of the suite, a process of its own: an HTTP server whose services (the first part of the path) answer,
// hang, drag or queue as they are told, and which keeps its own log of calls.
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Behaviour, Body, Command, Reply, ServiceLog } from './messages.js';

class Service {
  calls = 0;
  inFlight = 0;
  inFlightMax = 0;
  behaviour: Behaviour = { kind: 'answer', afterMs: 0 };
  /** When the worker will be free, on the clock of `performance.now`. */
  #freeAtMs = 0;

  called(operation: string, response: ServerResponse): void {
    this.calls += 1;
    this.inFlight += 1;
    this.inFlightMax = Math.max(this.inFlightMax, this.inFlight);
    response.once('close', () => (this.inFlight -= 1));
    const afterMs = this.#answersAfterMs(operation);
    if (afterMs === Infinity) return;
    if (afterMs <= 0) answer(response);
    else setTimeout(() => answer(response), afterMs);
  }

  log(): ServiceLog {
    const { calls, inFlight, inFlightMax } = this;
    return { calls, inFlight, inFlightMax };
  }

  #answersAfterMs(operation: string): number {
    const { behaviour } = this;
    switch (behaviour.kind) {
      case 'answer':
        return behaviour.afterMs;
      case 'hang':
        return Infinity;
      case 'slow-calls':
        return this.calls % behaviour.nth === 0 ? behaviour.slowMs : 0;
      case 'worker': {
        const nowMs = performance.now();
        const costMs = operation === 'simplified' ? behaviour.simplifiedMs : behaviour.fullMs;
        // Counted on, so that late timers never change what the worker can do.
        this.#freeAtMs = Math.max(nowMs, this.#freeAtMs) + costMs;
        return this.#freeAtMs - nowMs;
      }
    }
  }
}

function answer(response: ServerResponse): void {
  const body: Body = { madeUnixMs: Date.now() };
  response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
}

const services = new Map<string, Service>();

function service(name: string): Service {
  const known = services.get(name) ?? new Service();
  services.set(name, known);
  return known;
}

const server = createServer((request, response) => {
  const [, name = '', operation = ''] = (request.url ?? '').split(/[/?]/);
  request.resume();
  service(name).called(operation, response);
});

const reply = (message: Reply) => process.send?.(message);

process.on('message', (command: Command) => {
  if (command.do === 'behave') {
    for (const [name, behaviour] of Object.entries(command.services)) service(name).behaviour = behaviour;
  }
  const logs = Object.fromEntries([...services].map(([name, one]) => [name, one.log()]));
  reply({ kind: 'done', id: command.id, logs });
});
// Its parent is gone: nothing is left to answer.
process.on('disconnect', () => process.exit());

server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () =>
  reply({ kind: 'listening', port: (server.address() as AddressInfo).port }),
);
