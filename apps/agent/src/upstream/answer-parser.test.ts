import { checkModel, checkModelAsync } from '@bulwark/testing';
import fc from 'fast-check';
import { request } from 'node:http';
import { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { changedAnswer, goodAnswer, pieces, type AnswerText } from './answer-fixture.js';
import { BadAnswerError, type AnswerHead } from './answer-head.js';
import { AnswerParser } from './answer-parser.js';

interface Read {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: string;
  readonly trailers: readonly string[];
}

interface Outcome {
  /** Undefined = it was not accepted as a whole answer. */
  readonly read: Read | undefined;
  readonly fault: string | undefined;
  readonly leftover: number;
  readonly interim: number;
}

/** What the parser makes of an answer that comes in these pieces, after which the connection ends. */
function parse(answer: AnswerText, cuts: readonly number[] = [], parser = new AnswerParser()): Outcome {
  let head: AnswerHead | undefined;
  let interim = 0;
  const body: Buffer[] = [];
  const sink = {
    interim: () => void (interim += 1),
    head: (told: AnswerHead) => {
      expect(head).toBeUndefined();
      head = told;
    },
    data: (piece: Buffer) => {
      expect(head).toBeDefined();
      expect(piece.length).toBeGreaterThan(0);
      body.push(Buffer.from(piece));
    },
  };
  parser.reset(answer.toHead);
  let leftover = 0;
  let over = false;
  let fault: string | undefined;
  for (const piece of pieces(Buffer.from(answer.text, 'latin1'), cuts)) {
    if (over) {
      leftover += piece.length;
      continue;
    }
    const progress = parser.push(piece, sink);
    if (progress instanceof BadAnswerError) {
      return { read: undefined, fault: progress.message, leftover: 0, interim };
    }
    if (progress === 'done') {
      over = true;
      leftover = parser.leftover;
    }
  }
  if (!over && !parser.finish()) fault = 'incomplete';
  if (head === undefined || fault !== undefined) return { read: undefined, fault, leftover, interim };
  const { status, headers } = head;
  const all = Buffer.concat(body).toString('latin1');
  return { read: { status, headers, body: all, trailers: parser.trailers }, fault, leftover, interim };
}

/** What node's own client makes of it; undefined = it does not take it. */
function parseByNode(answer: AnswerText): Promise<Read | undefined> {
  return new Promise((resolve) => {
    const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
    const call = request({
      method: answer.toHead ? 'HEAD' : 'GET',
      createConnection: () => socket,
      maxHeaderSize: 256 * 1024,
    });
    const refused = (): void => resolve(undefined);
    call.on('error', refused);
    call.on('upgrade', refused);
    call.on('response', (response) => {
      const { statusCode: status = 0, rawHeaders: headers } = response;
      const body: Buffer[] = [];
      response.on('data', (chunk: Buffer) => body.push(chunk));
      response.on('error', refused);
      response.on('aborted', refused);
      response.on('end', () => {
        const all = Buffer.concat(body).toString('latin1');
        resolve({ status, headers, body: all, trailers: response.rawTrailers });
      });
    });
    call.end();
    socket.push(Buffer.from(answer.text, 'latin1'));
    socket.push(null);
    setImmediate(() => setImmediate(() => setImmediate(refused)));
  });
}

const answer = (text: string, toHead = false): AnswerText => ({ text, toHead });
const fault = (text: string) => parse(answer(text)).fault;
const OK = 'HTTP/1.1 200 OK\r\n';

describe('the parser of answers', () => {
  it('takes every answer that is as it should be', () => {
    checkModel(
      fc.property(goodAnswer, (good) => {
        const { read, fault: found } = parse(good);
        expect([read === undefined, found]).toEqual([false, undefined]);
      }),
    );
  });

  it('reads the same whatever pieces an answer comes in, and one after another', () => {
    const parser = new AnswerParser();
    checkModel(
      fc.property(
        fc.oneof(goodAnswer, changedAnswer),
        fc.array(fc.nat(10_000), { maxLength: 8 }),
        (any, cuts) => {
          const whole = parse(any);
          expect(parse(any, cuts, parser)).toEqual(whole);
          const single = Array.from({ length: any.text.length }, (_, index) => index);
          expect(parse(any, single, parser)).toEqual(whole);
        },
      ),
      0.5,
    );
  });

  it('takes nothing that the parser of node reads differently or refuses', async () => {
    const seen = { taken: 0, refused: 0 };
    await checkModelAsync(
      fc.asyncProperty(
        fc.oneof({ weight: 1, arbitrary: goodAnswer }, { weight: 4, arbitrary: changedAnswer }),
        async (any) => {
          const { read, leftover } = parse(any);
          if (read === undefined) return void (seen.refused += 1);
          seen.taken += 1;
          // Node takes what follows for the next answer.
          const text = any.text.slice(0, any.text.length - leftover);
          expect(await parseByNode({ ...any, text })).toEqual(read);
        },
      ),
      0.5,
    );
    // Neither of the two is all there is.
    expect(seen.taken).toBeGreaterThan(1_000);
    expect(seen.refused).toBeGreaterThan(1_000);
  }, 60_000);

  it('reads arbitrary bytes without a throw, to an end', () => {
    checkModel(
      fc.property(fc.uint8Array({ maxLength: 400 }), fc.array(fc.nat(400)), (bytes, cuts) => {
        const text = Buffer.from(bytes).toString('latin1');
        expect(parse(answer(text), cuts).read).toBeUndefined();
        parse(answer(`${OK}Transfer-Encoding: chunked\r\n\r\n${text}`), cuts);
      }),
      0.5,
    );
  });
});

describe('what the parser of answers refuses', () => {
  const table: readonly (readonly [what: string, text: string, why: RegExp])[] = [
    ['another protocol', 'HTTP/2.0 200 OK\r\n\r\n', /status line/],
    ['no status', 'HTTP/1.1 OK\r\n\r\n', /status line/],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n', /status line/],
    ['two spaces before the status', 'HTTP/1.1  200 OK\r\n\r\n', /status line/],
    ['an empty line first', `\r\n${OK}\r\n`, /status line/],
    ['a folded line', `${OK}A: b\r\n c\r\n\r\n`, /field name/],
    ['a space before the colon', `${OK}Content-Length : 3\r\n\r\nabc`, /field name/],
    ['a field without a colon', `${OK}Content-Length\r\n\r\n`, /field name/],
    ['a field without a name', `${OK}: b\r\n\r\n`, /field name/],
    ['a bare LF between fields', `${OK}A: b\nContent-Length: 3\r\n\r\nabc`, /LF instead of CRLF/],
    ['lines that end with LF', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok', /LF instead of CRLF/],
    ['another protocol that waits', 'SSH-2.0-x\r\n', /begin with a status line of HTTP\/1/],
    ['bytes of no protocol', '\0\0\x12\x04', /begin with a status line/],
    ['a malformed status line without more', 'HTTP/1.1 OK\r\n', /status line is malformed/],
    ['an LF in a head without end', `${OK}A: b\n${'x'.repeat(33_000)}`, /LF instead of CRLF/],
    ['an LF behind too many fields', `${OK}${'a: b\r\n'.repeat(501)}\n\r\n\r\n`, /LF instead of CRLF/],
    ['a bare CR in a value', `${OK}A: b\rContent-Length: 3\r\n\r\nabc`, /control character/],
    ['a NUL in a value', `${OK}A: b\0\r\n\r\n`, /control character/],
    ['two lengths', `${OK}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd`, /two Content-Length/],
    ['the same length twice', `${OK}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc`, /two Content-Length/],
    ['a list of lengths', `${OK}Content-Length: 3, 3\r\n\r\nabc`, /no number/],
    ['a signed length', `${OK}Content-Length: +3\r\n\r\nabc`, /no number/],
    ['a length beyond counting', `${OK}Content-Length: 9999999999999999\r\n\r\n`, /no number/],
    ['length and chunks', `${OK}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n`, /contradict/],
    ['another coding', `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n`, /just "chunked"/],
    [
      'chunked twice',
      `${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n`,
      /just "chunked"/,
    ],
    ['chunks of HTTP/1.0', 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', /HTTP\/1.0/],
    ['a switch of protocols', 'HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n', /101/],
    ['interim answers without end', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(17), /interim/],
    [
      'an interim answer that ends the connection',
      `HTTP/1.1 100 OK\r\nConnection: close\r\n\r\n${OK}\r\n`,
      /ends/,
    ],
    ['too many fields', `${OK}${'a: b\r\n'.repeat(501)}\r\n`, /500 fields/],
    ['a head without end', `${OK}A: ${'x'.repeat(33_000)}`, /too long/],
    ['a chunk size in words', `${OK}Transfer-Encoding: chunked\r\n\r\nfive\r\n`, /size/],
    ['a space after a chunk size', `${OK}Transfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n0\r\n\r\n`, /size/],
    ['a chunk size beyond counting', `${OK}Transfer-Encoding: chunked\r\n\r\n1000000000000\r\n`, /size/],
    ['a chunk longer than it says', `${OK}Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n`, /longer/],
    ['a chunk ended by a bare LF', `${OK}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\n0\r\n\r\n`, /longer/],
    ['a chunk line without end', `${OK}Transfer-Encoding: chunked\r\n\r\n3;${'x'.repeat(2_000)}`, /too long/],
    [
      'extensions without end',
      `${OK}Transfer-Encoding: chunked\r\n\r\n${`1;${'x'.repeat(1_000)}\r\na\r\n`.repeat(20)}`,
      /extensions/,
    ],
    [
      'trailers without end',
      `${OK}Transfer-Encoding: chunked\r\n\r\n0\r\n${'a: b\r\n'.repeat(8_000)}`,
      /too long/,
    ],
    ['a malformed trailer', `${OK}Transfer-Encoding: chunked\r\n\r\n0\r\na b: c\r\n\r\n`, /field name/],
    ['an end in the middle', `${OK}Content-Length: 10\r\n\r\nabc`, /incomplete/],
    ['chunks that end in the middle', `${OK}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n`, /incomplete/],
  ];
  it.each(table)('%s', (_what, text, why) => {
    expect(fault(text)).toMatch(why);
    const cuts = Array.from({ length: text.length }, (_, index) => index);
    expect(parse(answer(text), cuts).fault).toBe(fault(text));
  });
});

describe('what the parser of answers tells', () => {
  it('knows answers without a body, whatever their fields say', () => {
    for (const [text, toHead] of [
      [`${OK}Content-Length: 5\r\n\r\n`, true],
      [`${OK}Transfer-Encoding: chunked\r\n\r\n`, true],
      ['HTTP/1.1 204 No Content\r\n\r\n', false],
      ['HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n', false],
    ] as const) {
      expect(parse(answer(text, toHead))).toMatchObject({ read: { body: '' }, leftover: 0 });
      expect(parse(answer(`${text}abcde`, toHead)).leftover).toBe(5);
    }
  });

  it('skips interim answers, and tells of bytes after the end', () => {
    const text = `HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${OK}Content-Length: 2\r\n\r\nokHTTP/1.1`;
    expect(parse(answer(text))).toMatchObject({ read: { status: 200, body: 'ok' }, interim: 1, leftover: 8 });
  });

  it('says how long the connection is good', () => {
    const heads = [
      ['HTTP/1.1 200 OK\r\n', true, undefined],
      ['HTTP/1.1 200 OK\r\nConnection: x, Close\r\n', false, undefined],
      ['HTTP/1.0 200 OK\r\n', false, undefined],
      ['HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nKeep-Alive: timeout=15, max=9\r\n', true, 15],
    ] as const;
    for (const [text, persistent, idleSeconds] of heads) {
      const told: AnswerHead[] = [];
      const sink = { head: (head: AnswerHead) => void told.push(head), data: () => undefined };
      new AnswerParser().push(Buffer.from(`${text}\r\n`), sink);
      expect(told).toMatchObject([{ persistent, idleSeconds }]);
    }
  });

  it('tells nothing any more once it was stopped, also in the middle of a piece', () => {
    const parser = new AnswerParser();
    const told: string[] = [];
    const sink = {
      head: () => {
        told.push('head');
        parser.stop();
      },
      data: () => void told.push('data'),
    };
    parser.push(Buffer.from(`${OK}Content-Length: 2\r\n\r\nok`), sink);
    expect(told).toEqual(['head']);
  });
});
