/** Answers of HTTP/1, right and wrong ones, for the tests of their parser. */
import fc from 'fast-check';

const text = (alphabet: string, maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...alphabet), maxLength });
const TOKEN_CHARS = "abcXYZ019-_.!#$%&'*+^`|~";
const token = fc.string({ unit: fc.constantFrom(...TOKEN_CHARS), minLength: 1, maxLength: 12 });
const value = text('abc XYZ\t,;="\'()[]{}<>:/?\\@\x80\xa0\xff0', 24);
const blank = fc.constantFrom('', ' ', '\t', '  \t');

/** Names that mean nothing to the framing. */
const plainName = token.filter(
  (name) =>
    !/^(content-length|transfer-encoding|connection|keep-alive|proxy-connection|upgrade)$/i.test(name),
);
const field = fc
  .tuple(plainName, blank, value, blank)
  .map(([name, before, content, after]) => `${name}:${before}${content}${after}\r\n`);
const fields = fc.array(field, { maxLength: 5 }).map((lines) => lines.join(''));
const cased = (name: string) => fc.constantFrom(name, name.toLowerCase(), name.toUpperCase());
const body = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString('latin1'));
const reason = fc.option(text('OK not-found\t\xe9', 10), { nil: undefined });
const version = fc.constantFrom('HTTP/1.1', 'HTTP/1.0');
const statusLine = (http: string, status: number, said: string | undefined) =>
  `${http} ${status}${said === undefined ? '' : ` ${said}`}\r\n`;

const extension = fc
  .tuple(
    token,
    fc.option(
      fc.oneof(
        token,
        text('ab c;,\t=', 6).map((quoted) => `"${quoted}"`),
      ),
      { nil: undefined },
    ),
  )
  .map(([name, content]) => (content === undefined ? `;${name}` : `;${name}=${content}`));
const extensions = fc.array(extension, { maxLength: 2 }).map((all) => all.join(''));
const size = (length: number, form: number) =>
  ['', '0', '00'][form % 3] + (form > 2 ? length.toString(16).toUpperCase() : length.toString(16));
const chunk = fc
  .tuple(body, extensions, fc.nat(5))
  .map(([data, more, form]) => (data === '' ? '' : `${size(data.length, form)}${more}\r\n${data}\r\n`));
const chunks = fc
  .tuple(fc.array(chunk, { maxLength: 4 }), extensions, fields)
  .map(([all, more, trailers]) => `${all.join('')}0${more}\r\n${trailers}\r\n`);

/** Fields that frame a body, and the body. */
const framed = fc.oneof(
  fc.tuple(cased('Content-Length'), body).map(([name, data]) => [`${name}: ${data.length}\r\n`, data]),
  fc.tuple(cased('Transfer-Encoding'), chunks).map(([name, data]) => [`${name}: chunked\r\n`, data]),
  body.map((data) => ['', data]),
);
const connection = fc.constantFrom(
  '',
  'Connection: close\r\n',
  'connection: keep-alive\r\nKeep-Alive: timeout=5, max=100\r\n',
  'CONNECTION: x-private , keep-alive\r\n',
);
const interim = fc
  .array(fc.tuple(fc.constantFrom(100, 102, 103), reason, fields), { maxLength: 2 })
  .map((all) =>
    all.map(([status, said, lines]) => `${statusLine('HTTP/1.1', status, said)}${lines}\r\n`).join(''),
  );

export interface AnswerText {
  /** In latin1. */
  readonly text: string;
  /** To a HEAD request. */
  readonly toHead: boolean;
}

/** Answers as RFC 9112 has them. The connection ends after them. */
export const goodAnswer: fc.Arbitrary<AnswerText> = fc
  .tuple(
    interim,
    version,
    fc.oneof(fc.integer({ min: 200, max: 599 }), fc.constantFrom(200, 204, 304)),
    reason,
    fields,
    framed,
    connection,
    fields,
    fc.boolean(),
  )
  .filter(([, http, , , , [framing]]) => http === 'HTTP/1.1' || !/transfer/i.test(framing ?? ''))
  .map(([before, http, status, said, first, [framing = '', data = ''], kept, last, toHead]) => {
    const bodiless = toHead || status === 204 || status === 304;
    // 204 has no framing at all: RFC 9110 §15.3.5.
    const how = status === 204 ? '' : framing;
    const head = `${statusLine(http, status, said)}${first}${how}${kept}${last}\r\n`;
    return { text: `${before}${head}${bodiless ? '' : data}`, toHead };
  });

const ODD = [
  ...['\r', '\n', '\r\n', '\r\n\r\n', ' ', '\t', '\0', ':', ';', ',', '"', '0', 'f', '\x7f', '\x80', '\xff'],
  ...['Content-Length: 3\r\n', 'Content-Length: 3, 3\r\n', 'content-length:+1\r\n', 'Content-Length:\r\n'],
  ...['Transfer-Encoding: chunked\r\n', 'Transfer-Encoding: gzip, chunked\r\n', 'transfer-encoding:\r\n'],
  ...[
    'Transfer-Encoding : chunked\r\n',
    '\r\n folded\r\n',
    'Connection: close\r\n',
    'HTTP/1.1 200 OK\r\n\r\n',
  ],
  ...['0\r\n\r\n', 'fffffffffffffffff\r\n', '-1\r\n', '0x5\r\n', '5 \r\n', 'HTTP/1.1 101 Switch\r\n\r\n'],
];

/** One change somewhere in a text. */
const change = fc.tuple(
  fc.constantFrom('insert', 'replace', 'remove', 'repeat', 'cut', 'swap' as const),
  fc.nat(10_000),
  fc.nat(12),
  fc.constantFrom(...ODD),
);

/** Good answers with one to three things wrong, or not. */
export const changedAnswer: fc.Arbitrary<AnswerText> = fc
  .tuple(goodAnswer, fc.array(change, { minLength: 1, maxLength: 3 }))
  .map(([answer, changes]) => ({ ...answer, text: changes.reduce(changed, answer.text) }));

function changed(
  before: string,
  [how, where, length, odd]: readonly [string, number, number, string],
): string {
  const at = before.length === 0 ? 0 : where % before.length;
  const [head, part, tail] = [before.slice(0, at), before.slice(at, at + length), before.slice(at + length)];
  switch (how) {
    case 'insert':
      return `${head}${odd}${before.slice(at)}`;
    case 'replace':
      return `${head}${odd}${tail}`;
    case 'remove':
      return `${head}${tail}`;
    case 'repeat':
      return `${head}${part}${part}${tail}`;
    case 'cut':
      return head;
    default:
      return `${head}${[...part].reverse().join('')}${tail}`;
  }
}

/** Cuts a text into pieces at these places. */
export function pieces(bytes: Buffer, places: readonly number[]): Buffer[] {
  const cuts = places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b);
  return [0, ...cuts]
    .map((from, index) => bytes.subarray(from, cuts[index] ?? bytes.length))
    .filter((piece) => piece.length > 0);
}
