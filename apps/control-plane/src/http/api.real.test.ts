import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { eventually, temporaryDirectory } from '@bulwark/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { quietDecider } from '../fleet/quiet-decider.js';
import { ApiClient, POLICIES_PATH as PATH, policy, type WatchFrame } from '../in-process/api-client.js';
import { startInProcess, type InProcessReplica } from '../in-process/replica.js';
import type { ApiObject } from '../objects/api-object.js';

interface List {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly ApiObject[];
}

interface Status {
  readonly reason: string;
  readonly message: string;
  readonly details: { readonly kind?: string; readonly causes?: readonly { readonly field: string }[] };
}

let replica: InProcessReplica;
let api: ApiClient;
const directory = temporaryDirectory('api');

beforeAll(async () => {
  replica = await startInProcess({ store: `file:${directory.path}`, createDecider: quietDecider });
  api = new ApiClient(replica.http);
  await eventually(async () => (await api.call('GET', '/readyz')).code === 200);
});

afterAll(async () => {
  await replica.stop();
  directory.remove();
});

const status = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
  api.call<Status>(method, path, body, headers);

describe('writing policies', () => {
  it('creates with the metadata that the server sets, and refuses a second one of the name', async () => {
    const { code, body } = await api.call('POST', PATH, policy('created'));
    expect(code).toBe(201);
    expect(body.metadata).toMatchObject({ name: 'created', namespace: 'shop', generation: 1 });
    expect(body.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
    expect(body.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    const again = await status('POST', PATH, policy('created'));
    expect([again.code, again.body.reason]).toEqual([409, 'AlreadyExists']);
  });

  it('makes a name from generateName, and asks for one where there is neither', async () => {
    const made = await api.call('POST', PATH, policy('', {}, { generateName: 'made-' }));
    expect(made.body.metadata.name).toMatch(/^made-[a-z0-9]{5}$/);
    expect((await status('POST', PATH, policy(''))).code).toBe(422);
  });

  it('counts the generation with changes of spec only, and writes nothing when nothing changed', async () => {
    const { body: first } = await api.call('POST', PATH, policy('counted'));
    const { body: same } = await api.call('PUT', `${PATH}/counted`, policy('counted'));
    expect(same.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
    const { body: labelled } = await api.call('PATCH', `${PATH}/counted`, {
      metadata: { labels: { a: 'b' } },
    });
    expect(labelled.metadata.generation).toBe(1);
    expect(Number(labelled.metadata.resourceVersion)).toBeGreaterThan(Number(first.metadata.resourceVersion));
    const { body: changed } = await api.call('PATCH', `${PATH}/counted`, {
      spec: { timeout: { total: '3s' } },
    });
    expect(changed.metadata).toMatchObject({ generation: 2, uid: first.metadata.uid });
    const { body: removed } = await api.call('PATCH', `${PATH}/counted`, { metadata: { labels: null } });
    expect(removed.metadata.labels).toBeUndefined();
  });

  it('tells a writer with an older version that it is stale', async () => {
    const { body: first } = await api.call('POST', PATH, policy('stale'));
    await api.call('PATCH', `${PATH}/stale`, { spec: { timeout: { total: '4s' } } });
    const resourceVersion = first.metadata.resourceVersion;
    const late = await status('PUT', `${PATH}/stale`, policy('stale', {}, { resourceVersion }));
    expect([late.code, late.body.reason]).toEqual([409, 'Conflict']);
    expect(late.body.message).toContain(
      'the object has been modified; please apply your changes to the latest version',
    );
    expect((await status('PATCH', `${PATH}/stale`, { metadata: { resourceVersion } })).code).toBe(409);
  });

  it('lets two writers of one object end with one of their objects whole, the version up by one each', async () => {
    const { body: start } = await api.call('POST', PATH, policy('raced'));
    const write = (total: string) =>
      Promise.all(
        Array.from({ length: 20 }, (_, round) =>
          api.call('PATCH', `${PATH}/raced`, {
            spec: { timeout: { total } },
            metadata: { annotations: { by: `${total}-${round}` } },
          }),
        ),
      );
    const answers = (await Promise.all([write('5s'), write('6s')])).flat();
    expect(answers.filter(({ code }) => code !== 200 && code !== 409)).toEqual([]);
    const { body: end } = await api.call('GET', `${PATH}/raced`);
    const spec = end.spec as { timeout: { total: string } };
    expect(end.metadata.annotations?.['by']?.startsWith(spec.timeout.total)).toBe(true);
    expect(end.metadata.generation).toBeLessThanOrEqual((start.metadata.generation ?? 0) + 40);
  });

  it('tries without a trace: create, patch and delete with dryRun, also in the body of a delete', async () => {
    expect((await api.call('POST', `${PATH}?dryRun=All`, policy('tried'))).code).toBe(201);
    expect((await api.call('GET', `${PATH}/tried`)).code).toBe(404);
    const { body: real } = await api.call('POST', PATH, policy('tried'));
    const dry = await api.call('PATCH', `${PATH}/tried?dryRun=All`, { spec: { timeout: { total: '9s' } } });
    expect(dry.body).toMatchObject({ spec: { timeout: { total: '9s' } }, metadata: { generation: 2 } });
    expect((await api.call('DELETE', `${PATH}/tried`, { dryRun: ['All'] })).code).toBe(200);
    expect((await api.call('GET', `${PATH}/tried`)).body.metadata.resourceVersion).toBe(
      real.metadata.resourceVersion,
    );
    expect((await status('POST', `${PATH}?dryRun=Some`, policy('other'))).code).toBe(400);
  });

  it('deletes once, and only what the preconditions describe', async () => {
    await api.call('POST', PATH, policy('gone'));
    expect((await status('DELETE', `${PATH}/gone`, { preconditions: { uid: 'another' } })).code).toBe(409);
    expect((await status('DELETE', `${PATH}/gone`)).code).toBe(200);
    expect((await status('DELETE', `${PATH}/gone`)).code).toBe(404);
  });

  it('keeps an object with finalizers until they are gone', async () => {
    await api.call('POST', PATH, policy('held', {}, { finalizers: ['example.com/hold'] }));
    const { body: marked } = await api.call('DELETE', `${PATH}/held`);
    expect(marked.metadata.deletionTimestamp).toBeDefined();
    expect((await api.call('PATCH', `${PATH}/held`, { metadata: { finalizers: null } })).code).toBe(200);
    expect((await api.call('GET', `${PATH}/held`)).code).toBe(404);
  });
});

describe('bad input', () => {
  it('is refused with every problem, its path and the nearest name; nothing is stored', async () => {
    const wrong = policy('wrong', { timeout: { total: '30', attempt: '5s' }, retrys: { maxAttempts: 3 } });
    const { code, body } = await status('POST', PATH, wrong);
    expect([code, body.reason, body.details.kind]).toEqual([422, 'Invalid', 'ResiliencePolicy']);
    const fields = body.details.causes?.map(({ field }) => field);
    expect(fields).toEqual(expect.arrayContaining(['spec.timeout.total', 'spec.retrys']));
    expect((await api.call('GET', `${PATH}/wrong`)).code).toBe(404);
  });

  it('with unknown fields alone is refused, warned about, or pruned, as the client asks', async () => {
    const odd = policy('odd', { timeuot: {} });
    const strict = await status('POST', PATH, odd);
    expect(strict.code).toBe(400);
    expect(strict.body.message).toContain(
      'strict decoding error: unknown field "spec.timeuot" (did you mean "spec.timeout"?)',
    );
    const warned = await api.call('POST', `${PATH}?fieldValidation=Warn`, odd);
    expect(warned.code).toBe(201);
    expect(warned.headers.get('warning')).toContain('unknown field \\"spec.timeuot\\"');
    expect(warned.body.spec).not.toHaveProperty('timeuot');
    const ignored = await api.call('PUT', `${PATH}/odd?fieldValidation=Ignore`, odd);
    expect(ignored.code).toBe(200);
    expect(ignored.headers.get('warning') ?? '').not.toContain('unknown field');
  });

  it('with an entry twice in a list is invalid, whatever the client asks about unknown fields', async () => {
    const twice = policy('twice', { retry: { methods: ['GET', 'GET'] } });
    for (const mode of ['Strict', 'Warn', 'Ignore']) {
      const { code, body } = await status('POST', `${PATH}?fieldValidation=${mode}`, twice);
      expect([code, body.details.causes?.map(({ field }) => field)]).toEqual([
        422,
        ['spec.retry.methods[1]'],
      ]);
    }
  });

  it('is refused before it is made when its answer cannot be written, or its options not be read', async () => {
    const html = { Accept: 'text/html' };
    expect((await status('POST', PATH, policy('unseen'), html)).code).toBe(406);
    expect((await status('POST', `${PATH}?includeObject=Some`, policy('unseen'))).code).toBe(400);
    expect((await status('GET', `${PATH}/unseen`)).code).toBe(404);
    expect((await status('POST', PATH, policy('seen'))).code).toBe(201);
    const longer = { spec: { timeout: { total: '9s' } } };
    expect((await status('PATCH', `${PATH}/seen`, longer, html)).code).toBe(406);
    expect((await status('DELETE', `${PATH}/seen`, undefined, html)).code).toBe(406);
    expect((await status('DELETE', `${PATH}/seen`, ['All'])).code).toBe(400);
    expect((await api.call('GET', `${PATH}/seen`)).body.metadata.generation).toBe(1);
    await api.call('DELETE', `${PATH}/seen`);
  });

  it('in parts that are too large together is told so', async () => {
    const annotations = { 'example.org/a': '\u0001'.repeat(170_000) };
    expect((await status('POST', PATH, policy('large', {}, { annotations }))).code).toBe(201);
    const fallback = [{ static: { body: '\u0001'.repeat(60_000) } }];
    const { code, body } = await status('PATCH', `${PATH}/large`, { spec: { fallback } });
    expect([code, body.reason]).toEqual([413, 'RequestEntityTooLarge']);
    await api.call('DELETE', `${PATH}/large`);
  });

  it.each([
    ['a prototype key', '{"__proto__": {"polluted": 1}}', 400],
    ['broken JSON', '{"a":', 400],
    ['another kind', JSON.stringify({ ...policy('x'), kind: 'Pod' }), 400],
    ['another namespace', JSON.stringify(policy('x', {}, { namespace: 'other' })), 400],
    ['a name that is no name', JSON.stringify(policy('../x')), 422],
    ['1 MiB and more', JSON.stringify(policy('x', { pad: 'x'.repeat(1_100_000) })), 413],
  ])('with %s is refused', async (_what, body, code) => {
    expect((await status('POST', PATH, body)).code).toBe(code);
  });

  it('is answered in the words of the API: types, methods, selectors, paths', async () => {
    const strategic = { 'Content-Type': 'application/strategic-merge-patch+json' };
    expect((await status('PATCH', `${PATH}/x`, '{}', strategic)).code).toBe(415);
    expect((await status('POST', PATH, 'a: b', { 'Content-Type': 'application/yaml' })).code).toBe(415);
    expect((await status('POST', '/apis/bulwark.dev/v1/namespaces/shop/breakers', {})).code).toBe(405);
    expect((await status('GET', `${PATH}?labelSelector=a+b`)).code).toBe(400);
    expect((await status('GET', `${PATH}?limit=abc`)).code).toBe(400);
    expect((await status('GET', `${PATH}?sendInitialEvents=true`)).code).toBe(422);
    expect((await status('GET', '/apis/bulwark.dev/v1/namespaces/shop/nothings')).code).toBe(404);
    expect((await status('GET', PATH, undefined, { Accept: 'text/html' })).code).toBe(406);
    expect((await status('GET', '/nowhere')).body.reason).toBe('NotFound');
  });
});

describe('lists', () => {
  it('select by label and field, over one namespace or all', async () => {
    await api.call('POST', PATH, policy('labelled', {}, { labels: { team: 'pay' } }));
    await api.call(
      'POST',
      PATH.replace('/shop/', '/shop-b/'),
      policy('elsewhere', {}, { labels: { team: 'pay' } }),
    );
    const names = async (path: string) =>
      (await api.call<List>('GET', path)).body.items.map(({ metadata }) => metadata.name);
    expect(await names(`${PATH}?labelSelector=team%3Dpay`)).toEqual(['labelled']);
    expect(await names(`/apis/bulwark.dev/v1/resiliencepolicies?labelSelector=team+in+(pay)`)).toEqual([
      'elsewhere',
      'labelled',
    ]);
    expect(await names(`${PATH}?fieldSelector=metadata.name%3Dlabelled`)).toEqual(['labelled']);
  });

  it('come as a table when kubectl asks for one', async () => {
    const accept = { Accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json' };
    const { body } = await api.call<{ kind: string; rows: unknown[] }>(
      'GET',
      `${PATH}/labelled`,
      undefined,
      accept,
    );
    expect([body.kind, body.rows.length]).toEqual(['Table', 1]);
  });
});

describe('a watch', () => {
  async function take(path: string, count: number): Promise<WatchFrame[]> {
    const stop = new AbortController();
    const frames: WatchFrame[] = [];
    for await (const frame of api.watch(path, AbortSignal.any([stop.signal, AbortSignal.timeout(10_000)]))) {
      frames.push(frame);
      if (frames.length === count) stop.abort();
    }
    return frames;
  }
  const names = (frames: readonly WatchFrame[]) =>
    frames.map(({ type, object }) => `${type} ${object.metadata.name}`);

  it('from a version on tells everything after it once and in order, the past and what comes', async () => {
    const { body: list } = await api.call<List>('GET', PATH);
    await api.call('POST', PATH, policy('w-1'));
    await api.call('PATCH', `${PATH}/w-1`, { spec: { timeout: { total: '7s' } } });
    const path = `${PATH}?watch=true&resourceVersion=${list.metadata.resourceVersion}&fieldSelector=metadata.name%3Dw-1`;
    const seen = take(path, 3);
    await eventually(() => replica.parts.api.openWatches > 0);
    await api.call('DELETE', `${PATH}/w-1`);
    expect(names(await seen)).toEqual(['ADDED w-1', 'MODIFIED w-1', 'DELETED w-1']);
    const versions = (await seen).map(({ object }) => Number(object.metadata.resourceVersion));
    expect(versions).toEqual([...versions].sort((a, b) => a - b));
    expect(new Set(versions).size).toBe(3);
  });

  it('without a version begins with what there is, and marks the end of it when asked', async () => {
    await api.call('POST', PATH, policy('w-2'));
    const selector = 'fieldSelector=metadata.name%3Dw-2';
    expect(names(await take(`${PATH}?watch=1&${selector}`, 1))).toEqual(['ADDED w-2']);
    const initial = `${PATH}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&${selector}`;
    const [added, mark] = await take(initial, 2);
    expect(added?.type).toBe('ADDED');
    expect(mark?.object.metadata.annotations).toEqual({ 'k8s.io/initial-events-end': 'true' });
  });

  it('tells an object that leaves the selection as deleted', async () => {
    await api.call('POST', PATH, policy('w-3', {}, { labels: { shown: 'yes' } }));
    const seen = take(`${PATH}?watch=1&labelSelector=shown%3Dyes`, 2);
    await eventually(() => replica.parts.api.openWatches > 0);
    await api.call('PATCH', `${PATH}/w-3`, { metadata: { labels: { shown: 'no' } } });
    expect(names(await seen)).toEqual(['ADDED w-3', 'DELETED w-3']);
  });

  it('ends by itself after its time, with a bookmark to go on from', async () => {
    const frames = await take(
      `${PATH}?watch=1&resourceVersion=${(await api.call<List>('GET', PATH)).body.metadata.resourceVersion}&timeoutSeconds=1&allowWatchBookmarks=1`,
      99,
    );
    expect(frames.at(-1)?.type).toBe('BOOKMARK');
  });

  it('from a version that is not there yet, or of another replica, says so', async () => {
    const ahead = await status('GET', `${PATH}?watch=1&resourceVersion=999999999`);
    expect([ahead.code, ahead.body.reason]).toEqual([504, 'Timeout']);
    const virtual = '/apis/bulwark.dev/v1/breakers?watch=1&resourceVersion=12345';
    expect((await status('GET', virtual)).code).toBe(410);
  });
});

describe('a replica', () => {
  it('has every namespace, as kubectl asks before it says that an object is not there', async () => {
    expect((await api.call('GET', '/api/v1/namespaces/anything')).code).toBe(200);
    expect((await api.call('GET', '/api/v1/namespaces/No_Name')).code).toBe(404);
  });

  it('tells its health, its version and its metrics', async () => {
    expect((await api.call('GET', '/healthz')).code).toBe(200);
    const metrics = await (await fetch(`http://${replica.http}/metrics`)).text();
    expect(metrics).toContain(
      'bulwark_store_operation_duration_seconds_count{operation="commit",result="ok"}',
    );
    expect(metrics).toContain(
      'bulwark_http_request_duration_seconds_count{method="POST",resource="resiliencepolicies",code="201"}',
    );
    expect(metrics).not.toContain('NaN');
  });
});

describe('a server on loopback', () => {
  it.each(['/healthz', '/metrics', '/apis', PATH])(
    'does not answer %s under a foreign name',
    async (path) => {
      const [host, port] = replica.http.split(':');
      const asked = request({ host, port, path, headers: { Host: 'evil.example' } }).end();
      const [answer] = (await once(asked, 'response')) as [IncomingMessage];
      const body = JSON.parse(await text(answer)) as Status;
      expect([answer.statusCode, body.reason]).toEqual([403, 'Forbidden']);
      expect(body.message).toContain('evil.example');
    },
  );
});

describe('HEAD', () => {
  it.each(['/healthz', '/apis/bulwark.dev/v1', PATH, `${PATH}?watch=true`])(
    'of %s is that of GET, without a body',
    async (path) => {
      const answer = await fetch(`http://${replica.http}${path}`, { method: 'HEAD' });
      expect([answer.status, await answer.text()]).toEqual([200, '']);
      expect(answer.headers.get('Content-Type')).toContain('application/json');
    },
  );
});

describe('what cannot be read', () => {
  it('is refused with a Status: a broken path, and a method that nobody knows', async () => {
    const broken = await status('GET', '/apis/%zz');
    expect([broken.code, broken.body.reason]).toEqual([400, 'BadRequest']);
    const [host, port] = replica.http.split(':');
    const socket = connect({ host: host ?? '', port: Number(port) });
    socket.end('FOO /apis HTTP/1.1\r\nHost: localhost\r\n\r\n');
    expect(await text(socket)).toMatch(/^HTTP\/1.1 400 [^]*"reason":"BadRequest"/);
  });

  it('is told apart when its headers are too large', async () => {
    const [host, port] = replica.http.split(':');
    const socket = connect({ host: host ?? '', port: Number(port) });
    socket.write(`GET /apis HTTP/1.1\r\nHost: localhost\r\nX-Large: ${'x'.repeat(40_000)}\r\n\r\n`);
    expect(await text(socket)).toMatch(/^HTTP\/1.1 431 [^]*"code":431/);
  });
});
