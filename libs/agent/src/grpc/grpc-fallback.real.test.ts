import * as grpc from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import {
  agentWith,
  chat,
  cleanUp,
  echoClient,
  echoServer,
  failWith,
  metadataOf,
  policyDocument,
  unary,
  upload,
  watchStream,
  world,
  type EchoHandlers,
  type Text,
} from './grpc-fixture.js';
import { grpcGuard, type GrpcFailure, type GrpcGuard, type GrpcOptions } from './grpc-options.js';

afterEach(cleanUp);

const { status } = grpc;
const down = failWith(status.UNAVAILABLE);
const remembering = { timeout: { total: '5s' }, fallback: [{ lastGood: { maxAge: '60s' } }] };

/** Answers with who asked for what, until it is broken. */
function breakable() {
  const state = { broken: false, handlers: {} as EchoHandlers };
  state.handlers = {
    unary: (call, callback) => {
      const who = (call.metadata.get('authorization')[0] as string | undefined) ?? 'nobody';
      if (state.broken) callback(down);
      else callback(null, { text: `${call.request.text} for ${who}` }, metadataOf({ t: 'trailer' }));
    },
  };
  return state;
}

async function remembered(client: GrpcOptions, spec: object = remembering) {
  const dependency = breakable();
  const server = await echoServer(dependency.handlers);
  const bulwark = await agentWith([policyDocument(spec)]);
  return {
    dependency,
    bulwark,
    client: echoClient(server.address, [bulwark.grpc({ service: 'echo', ...client })]),
  };
}

const safe: GrpcOptions = { idempotency: { 'demo.Echo/Unary': 'NO_SIDE_EFFECTS' }, remember: true };

describe('the last good answer of a unary call', () => {
  it('stands in, marked, for who asked the same', async () => {
    const { dependency, client } = await remembered(safe);
    const as = (who: string) => ({ metadata: metadataOf({ authorization: who }) });
    expect((await unary(client, 'recs', as('ann')).ended).texts).toEqual(['recs for ann']);
    dependency.broken = true;
    const heard = await unary(client, 'recs', as('ann')).ended;
    expect(heard).toMatchObject({ code: status.OK, texts: ['recs for ann'] });
    expect(heard.trailers.get('bulwark-degraded')[0]).toMatch(
      /^last-good;upstream="echo";reason="failure";age=0;policy="shop\/echo@\d+"$/,
    );
    expect(heard.trailers.get('t')).toEqual(['trailer']);
    expect((await unary(client, 'recs', as('bob')).ended).code).toBe(status.UNAVAILABLE);
    expect((await unary(client, 'recs').ended).code).toBe(status.UNAVAILABLE);
    expect((await unary(client, 'other', as('ann')).ended).code).toBe(status.UNAVAILABLE);
  });

  it('is not what an application made of the answer meanwhile', async () => {
    const { dependency, client } = await remembered(safe);
    const ask = () =>
      new Promise<Text | undefined>((resolve) => {
        client.unary({ text: 'a' }, new grpc.Metadata(), {}, (_error, answer) => resolve(answer));
      });
    const fresh = (await ask()) as { text: string };
    fresh.text = 'changed';
    dependency.broken = true;
    const first = (await ask()) as { text: string };
    expect(first.text).toBe('a for nobody');
    first.text = 'changed too';
    expect((await ask())?.text).toBe('a for nobody');
  });

  it('varies by the metadata that the policy names', async () => {
    const spec = { ...remembering, fallback: [{ lastGood: { maxAge: '60s', varyBy: ['header:lang'] } }] };
    const { dependency, client } = await remembered(safe, spec);
    await unary(client, 'a', { metadata: metadataOf({ lang: 'de' }) }).ended;
    dependency.broken = true;
    expect((await unary(client, 'a', { metadata: metadataOf({ lang: 'de' }) }).ended).code).toBe(status.OK);
    expect((await unary(client, 'a', { metadata: metadataOf({ lang: 'fr' }) }).ended).code).toBe(
      status.UNAVAILABLE,
    );
  });

  it.each<[string, GrpcOptions, GrpcGuard, grpc.status]>([
    ['a client that did not ask for it', { ...safe, remember: false }, {}, status.UNAVAILABLE],
    ['a method that may change something', { remember: true }, {}, status.UNAVAILABLE],
    ['a call that asks for it', {}, { remember: true }, status.OK],
    ['a call that names its answer', {}, { cacheKey: 'ann: recs' }, status.OK],
    ['a call that does not want it', safe, { remember: false }, status.UNAVAILABLE],
  ])('of %s', async (_what, options, guard, code) => {
    const { dependency, client } = await remembered(options);
    await unary(client, 'a', { options: grpcGuard(guard) }).ended;
    dependency.broken = true;
    expect((await unary(client, 'a', { options: grpcGuard(guard) }).ended).code).toBe(code);
  });

  it('is not a degraded answer of a layer below', async () => {
    let broken = false;
    const server = await echoServer({
      unary: (call, callback) =>
        broken
          ? callback(down)
          : callback(null, call.request, metadataOf({ 'bulwark-degraded': 'static;upstream="leaf"' })),
    });
    const bulwark = await agentWith([policyDocument(remembering)]);
    const client = echoClient(server.address, [bulwark.grpc({ service: 'echo', ...safe })]);
    expect((await unary(client).ended).code).toBe(status.OK);
    broken = true;
    expect((await unary(client).ended).code).toBe(status.UNAVAILABLE);
  });
});

describe('other stand-ins', () => {
  const dead: EchoHandlers = {
    unary: (_call, callback) => callback(down),
    upload: (call, callback) => {
      call.resume();
      call.on('end', () => callback(down));
    },
    watch: (call) => void call.emit('error', down),
    chat: (call) => void call.emit('error', down),
    popular: (call, callback) => callback(null, { text: `popular ${call.request.text}` }),
  };

  it('a static answer makes no message: the failure is told as it is, and not as degraded', async () => {
    const spec = { timeout: { total: '5s' }, fallback: [{ static: { status: 200, body: '{}' } }] };
    const { client, bulwark } = await world(dead, spec);
    const heard = await unary(client).ended;
    expect(heard).toMatchObject({ code: status.UNAVAILABLE, details: 'failed' });
    expect(heard.trailers.get('bulwark-degraded')).toEqual([]);
    expect(bulwark.state().policies[0]?.totals).toMatchObject({ failed: 1, degraded: { static: 0 } });
  });

  it('a function of the call answers where there is a single answer, told why', async () => {
    const { client } = await world(dead, { timeout: { total: '5s' } });
    const asked: GrpcFailure[] = [];
    const options = grpcGuard({
      fallback: (failure) => {
        asked.push(failure);
        return { text: 'stand-in' };
      },
    });
    const heard = await unary(client, 'a', { options }).ended;
    expect(heard).toMatchObject({ code: status.OK, texts: ['stand-in'] });
    expect(heard.trailers.get('bulwark-degraded')[0]).toMatch(/^function;upstream="echo";reason="failure"/);
    expect(asked).toMatchObject([
      { reason: 'failure', status: { code: status.UNAVAILABLE, details: 'failed' } },
    ]);
    const sending = upload(client, { options });
    sending.call.end({ text: 'a' });
    expect((await sending.ended).texts).toEqual(['stand-in']);
    const talking = chat(client, { options });
    talking.call.end({ text: 'a' });
    expect((await watchStream(client, 'a', { options }).ended).code).toBe(status.UNAVAILABLE);
    expect((await talking.ended).code).toBe(status.UNAVAILABLE);
    expect(asked).toHaveLength(2);
  });

  it.each<[string, unknown, string]>([
    ['nothing', undefined, '(absent)'],
    ['null', null, 'null'],
    ['an error', new Error('no idea'), '(an error: no idea)'],
  ])('a function that gives %s has no message: the call fails, and says why', async (_what, given, shown) => {
    const { client } = await world(dead, { timeout: { total: '5s' } });
    const options = grpcGuard({ fallback: () => given });
    const heard = await unary(client, 'a', { options }).ended;
    expect(heard).toMatchObject({
      code: status.UNAVAILABLE,
      details: `failed; its fallback gave ${shown}, which is no message`,
      texts: [],
    });
    expect(heard.trailers.get('bulwark-degraded')).toEqual([]);
  });

  it('a function that throws leaves the original failure, and a required contract asks none', async () => {
    const { client } = await world(dead, { timeout: { total: '5s' } });
    const broken = grpcGuard({ fallback: () => Promise.reject(new Error('no idea')) });
    expect((await unary(client, 'a', { options: broken }).ended).details).toBe('failed');
    const required = await world(dead, { timeout: { total: '5s' }, contract: 'required' });
    const options = grpcGuard({ fallback: () => ({ text: 'stand-in' }) });
    expect((await unary(required.client, 'a', { options }).ended).code).toBe(status.UNAVAILABLE);
  });

  it('a simplified operation is another method of the same messages', async () => {
    const spec = {
      timeout: { total: '5s' },
      fallback: [{ simplified: { operation: 'demo.Echo/Popular' } }],
    };
    const { client } = await world(dead, spec);
    const heard = await unary(client, 'recs').ended;
    expect(heard).toMatchObject({ code: status.OK, texts: ['popular recs'] });
    expect(heard.trailers.get('bulwark-degraded')[0]).toMatch(/^simplified;upstream="echo"/);
    expect((await watchStream(client).ended).code).toBe(status.UNAVAILABLE);
  });
});

it('degraded levels go up: who answers with the help of a degraded answer says so', async () => {
  const { dependency, client: below, bulwark } = await remembered(safe);
  await unary(below, 'a').ended;
  dependency.broken = true;
  const { address } = await echoServer(
    {
      unary: (call, callback) => {
        below.unary(call.request, new grpc.Metadata(), {}, (error, answer) => callback(error, answer));
      },
    },
    { interceptors: [bulwark.grpcServer()] },
  );
  const heard = await unary(echoClient(address, []), 'a').ended;
  expect(heard).toMatchObject({ code: status.OK, texts: ['a for nobody'] });
  expect(heard.trailers.get('bulwark-degraded')[0]).toMatch(/^last-good;upstream="echo"/);
});
