import { connect, grpcGuard, type Bulwark } from '@bulwark/agent';
import * as grpc from '@grpc/grpc-js';
import { fileURLToPath } from 'node:url';
import type { Say } from '../example.js';
import { cartsClient, cartsServer, type Cart, type CartsClient } from './carts-service.js';

const bootstrap = fileURLToPath(new URL('../../src/grpc/policy.yaml', import.meta.url));

/** How many calls reached it, and how many of the next it fails. */
interface Mood {
  calls: number;
  failing: number;
}

/** The dependency. Its interceptor joins what it answers with the calls it would make itself. */
function startCarts(bulwark: Bulwark, mood: Mood) {
  return cartsServer(
    {
      get: (call, callback) => {
        mood.calls += 1;
        if (mood.failing > 0) {
          mood.failing -= 1;
          callback({ code: grpc.status.UNAVAILABLE, details: 'down for a moment' });
          return;
        }
        const attempt = call.metadata.get('bulwark-attempt')[0]?.toString() ?? '1';
        const leftMs = Number(call.getDeadline()) - Date.now();
        callback(null, {
          text: `2 books (attempt ${attempt}, ${leftMs <= 3_001 ? 'within 3 s' : 'no hurry'})`,
        });
      },
      watch: (call) => {
        mood.calls += 1;
        call.write({ text: '2 books' });
        setTimeout(() => call.emit('error', { code: grpc.status.UNAVAILABLE, details: 'gone' }), 50);
      },
    },
    [bulwark.grpcServer()],
  );
}

function get(client: CartsClient, options: grpc.CallOptions = {}): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const call = client.get({ text: 'ann' }, new grpc.Metadata(), options, (_error, cart) => {
      text = cart?.text ?? '';
    });
    call.on('status', ({ code, metadata }) => {
      const marks = ['bulwark-degraded', 'bulwark-rejected'].flatMap((name) =>
        metadata.get(name).map((value) => ` ${name}: ${value.toString()}`),
      );
      resolve(`${grpc.status[code]} "${text}"${marks.join('')}`);
    });
  });
}

async function watch(client: CartsClient): Promise<string> {
  const stream = client.watch({ text: 'ann' });
  const texts: string[] = [];
  try {
    for await (const cart of stream as AsyncIterable<Cart>) texts.push(cart.text);
    return texts.join();
  } catch (error) {
    return `"${texts.join()}", then ${(error as grpc.ServiceError).details}`;
  }
}

export async function run(say: Say): Promise<void> {
  const bulwark = await connect({ service: 'storefront', bootstrap });
  const mood: Mood = { calls: 0, failing: 0 };
  const { address, server } = await startCarts(bulwark, mood);
  const client = cartsClient(address, [
    bulwark.grpc({
      service: 'carts',
      // @grpc/proto-loader keeps this in the definition, and `idempotencyLevels` reads it from there.
      idempotency: { 'shop.Carts/Get': 'NO_SIDE_EFFECTS' },
      remember: true,
    }),
  ]);
  const tell = async (what: string, call: () => Promise<string>): Promise<void> => {
    const before = mood.calls;
    const heard = await call();
    say(`${what}: ${heard} with ${mood.calls - before} call(s)`);
  };

  await tell('all is well', () => get(client));
  mood.failing = 1;
  await tell('one failure is retried', () => get(client));
  await tell('a stream that was begun is never repeated', () => watch(client));
  mood.failing = 2;
  await tell('the dependency is down, the last good answer stands in', () => get(client));
  const asked = grpcGuard({ cacheKey: 'a cart nobody has asked for' });
  await tell('the breaker is open, and there is no answer to remember', () => get(client, asked));
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  await tell('after the cooldown a probe succeeds', () => get(client));

  client.close();
  await new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
  await bulwark.close();
}
