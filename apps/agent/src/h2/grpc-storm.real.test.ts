import { eventually, seededRandom, startTcpProxy } from '@bulwark/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { admin, atEnd, cleanUp, sidecar } from '../sidecar-fixture.js';
import { EchoClient, echoServer, failure, readAll, Status } from './grpc-fixture.js';

afterEach(cleanUp);

interface Totals {
  readonly attempts: number;
  readonly retries: number;
  readonly inFlight: number;
  readonly waiting: number;
}

describe('gRPC calls of all kinds that end in every way', () => {
  it('leave no place taken, no stream open and nothing in flight', async () => {
    const random = seededRandom(20_261_130);
    const chance = (ratio: number): boolean => random() < ratio;
    const fails = () => failure(chance(0.5) ? Status.UNAVAILABLE : Status.NOT_FOUND);
    let open = 0;
    const seen = (call: { on: (event: 'cancelled', listener: () => void) => unknown }) => {
      open += 1;
      let over = false;
      const end = (): void => {
        if (!over) open -= 1;
        over = true;
      };
      call.on('cancelled', end);
      return end;
    };
    const { port } = await echoServer({
      unary: (call, done) => {
        const end = seen(call);
        if (chance(0.1)) return;
        setTimeout(() => {
          end();
          if (chance(0.2)) done(fails());
          else done(null, call.request);
        }, random() * 20);
      },
      down: (call) => {
        const end = seen(call);
        call.write(Buffer.alloc(Math.floor(random() * 200_000)));
        if (chance(0.1)) return;
        setTimeout(() => {
          end();
          if (chance(0.2)) call.emit('error', fails());
          else call.end();
        }, random() * 20);
      },
      both: (call) => {
        const end = seen(call);
        call.on('data', (part: Buffer) => call.write(part));
        call.on('error', () => undefined);
        call.on('end', () => {
          end();
          call.end();
        });
      },
    });
    const proxy = await startTcpProxy({ target: `127.0.0.1:${port}` });
    atEnd(() => proxy.close());
    const spec = {
      target: { service: 'fraud-api' },
      timeout: { attempt: '300ms', total: '600ms' },
      retry: { maxAttempts: 3, methods: ['POST'], backoff: { base: '1ms', max: '20ms' } },
      // Fewer places than callers: some are refused however fast the machine is.
      bulkhead: { maxConcurrent: 20, maxQueued: 4, maxWait: '50ms' },
      circuitBreaker: {
        scope: 'Instance',
        trip: { consecutiveFailures: 500 },
        cooldown: { initial: '100ms', factor: 1 },
      },
    };
    const running = await sidecar([spec], { 'fraud-api': `http://${proxy.address}` });
    const client = new EchoClient(running.listen);
    const one = async (): Promise<Status> => {
      const cancelAfterMs = chance(0.2) ? random() * 40 : undefined;
      const kind = Math.floor(random() * 3);
      if (kind === 0) {
        const abort = new AbortController();
        if (cancelAfterMs !== undefined) setTimeout(() => abort.abort(), cancelAfterMs);
        return (await client.unary('x'.repeat(Math.floor(random() * 100_000)), { abort })).code;
      }
      const conversation = kind === 1 ? undefined : client.both();
      const call = conversation ?? client.down('x');
      const ended = readAll(call);
      if (cancelAfterMs !== undefined) setTimeout(() => call.cancel(), cancelAfterMs);
      for (let part = 0; part < 3; part += 1)
        conversation?.write(Buffer.alloc(Math.floor(random() * 50_000)));
      if (chance(0.9)) conversation?.end();
      return (await ended).code;
    };
    const codes = new Map<Status, number>();
    const callers = Array.from({ length: 30 }, async () => {
      for (let count = 0; count < 30; count += 1) {
        const code = await one();
        codes.set(code, (codes.get(code) ?? 0) + 1);
        if (chance(0.02)) proxy.reset();
      }
    });
    await Promise.all(callers);
    // Every way was gone that does not depend on how fast the machine is, and one of those that do.
    const always = [Status.OK, Status.CANCELLED, Status.NOT_FOUND, Status.UNAVAILABLE];
    expect([...codes.keys()]).toEqual(expect.arrayContaining(always));
    expect(codes.size).toBeGreaterThan(always.length);
    const totals = async (): Promise<Totals | undefined> => {
      const { body } = await admin(running.admin, '/state');
      return (JSON.parse(body) as { policies: { totals: Totals }[] }).policies[0]?.totals;
    };
    const { attempts, retries } = (await totals()) ?? {};
    expect(attempts).toBeGreaterThan(200);
    expect(retries).toBeGreaterThan(20);
    await eventually(async () => {
      expect(await totals()).toMatchObject({ inFlight: 0, waiting: 0 });
      expect((await admin(running.admin, '/metrics')).body).toContain('bulwark_proxy_in_flight 0');
      expect(open).toBe(0);
    });
    await eventually(async () => (await client.unary('after')).code === Status.OK);
    running.signal();
    expect(await running.exit).toBe(0);
  });
});
