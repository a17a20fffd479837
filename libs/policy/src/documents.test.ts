import { describe, expect, it } from 'vitest';
import { DocumentError } from './document-error.js';
import { parseDocuments } from './documents.js';
import { MAX_DOCUMENTS, MAX_TEXT_BYTES } from './source-document.js';

const source = 'shop.yaml';
const values = async (text: string) => (await parseDocuments(text, { source })).map((one) => one.value);

async function refusal(text: string): Promise<DocumentError> {
  try {
    await parseDocuments(text, { source });
  } catch (error) {
    if (error instanceof DocumentError) return error;
    throw error;
  }
  throw new Error('the text was not refused');
}

describe('C055: no document is lost', () => {
  const three = [{ a: 1 }, { b: 2 }, { c: 3 }];
  it.each([
    ['with --- between', 'a: 1\n---\nb: 2\n---\nc: 3\n'],
    ['with --- at start and end', '---\na: 1\n---\nb: 2\n---\nc: 3\n---\n'],
    ['without a line end at the end', 'a: 1\n---\nb: 2\n---\nc: 3'],
    ['with CRLF', '---\r\na: 1\r\n---\r\nb: 2\r\n---\r\nc: 3\r\n'],
    ['with ... and comments', '# one\na: 1\n...\n# two\n---\nb: 2 # x\n---\n# three\nc: 3\n'],
    ['with empty documents between', '---\n---\na: 1\n---\n# nothing\n---\nb: 2\n---\nnull\n---\nc: 3\n'],
    ['as JSON', '{"a": 1}\n---\n{"b": 2}\n---\n{"c": 3}'],
    ['behind a byte order mark', '\ufeffa: 1\n---\nb: 2\n---\nc: 3\n'],
  ])('%s', async (_, text) => {
    expect(await values(text)).toEqual(three);
  });

  it('one bad document among three refuses the whole text and says where', async () => {
    const error = await refusal('a: 1\n---\nb: [2\n---\nc: 3\n');
    expect(error.code).toBe('BULWARK_DOCUMENT_SYNTAX');
    expect(error.problems[0]?.at).toMatchObject({ source, document: 2 });
    expect(error.message).toMatch(/^shop\.yaml:[34]: not valid YAML: /);
  });

  it('says each fault of each document', async () => {
    const error = await refusal('a: 1\na: 2\n---\nb: .nan\n---\nc: *nobody\n---\nd: [\n');
    expect(error.problems.map((one) => one.at?.document)).toEqual([1, 2, 3, 4]);
  });
});

describe('JSON', () => {
  it('is read with tabs, escapes and any layout', async () => {
    const value = { a: [1, -2.5e3, true, null, 'x\t"\u00e9\u2028'], 'b c': {} };
    expect(await values(JSON.stringify(value, null, '\t'))).toEqual([value]);
    expect(await values(JSON.stringify(value))).toEqual([value]);
  });
});

describe('a List', () => {
  it('is its items, each with its place', async () => {
    const text = '{\n"apiVersion": "v1",\n"kind": "List",\n"items": [\n{"a": 1},\n{"b": 2}\n]}';
    const documents = await parseDocuments(text, { source });
    expect(documents.map((one) => one.value)).toEqual([{ a: 1 }, { b: 2 }]);
    expect(documents.map((one) => one.at)).toEqual([
      { source, document: 1, item: 0, line: 5 },
      { source, document: 1, item: 1, line: 6 },
    ]);
    expect(documents[1]?.lineOf(['b'])).toBe(6);
  });

  it('without items is an empty file', async () => {
    expect((await refusal('kind: List\nitems: []\n')).code).toBe('BULWARK_DOCUMENT_EMPTY');
  });
});

describe('lines', () => {
  it('are those of the nearest part that is in the text', async () => {
    const [document] = await parseDocuments('# c\nspec:\n  a:\n    - x\n    - {y: 1,\n       z: 2}\n', {
      source,
    });
    expect(document?.at.line).toBe(2);
    expect(document?.lineOf(['spec', 'a', 1, 'z'])).toBe(6);
    expect(document?.lineOf(['spec', 'a', 0])).toBe(4);
    expect(document?.lineOf(['spec', 'missing'])).toBe(2);
  });
});

describe('nothing in it', () => {
  it.each(['', '\n\n', '# only\n# comments\n', '---\n', '---\n---\n', '---\n# c\n...\n', 'null'])(
    '%j is a clear error',
    async (text) => {
      const error = await refusal(text);
      expect(error.code).toBe('BULWARK_DOCUMENT_EMPTY');
      expect(error.message).toContain('shop.yaml document 1: there is no document in it');
    },
  );
});

describe('what is refused', () => {
  it('a key that stands twice in one map, in whatever writing, with both lines', async () => {
    const error = await refusal('spec:\n  retry: {a: 1}\n  "retry": {b: 1}\n  x: [{k: 1, k: 2}]\n');
    expect(error.problems.map((one) => [one.path, one.reason, one.at?.line])).toEqual([
      ['spec.retry', 'duplicate', 3],
      ['spec.x[0].k', 'duplicate', 4],
    ]);
    expect(error.problems[0]?.message).toBe('the key retry stands in this map already, in line 2');
  });

  it('a duplicate key in JSON', async () => {
    expect((await refusal('{"a": 1, "b": {"c": 1, "c": 1}}')).problems[0]).toMatchObject({
      path: 'b.c',
      reason: 'duplicate',
    });
  });

  it.each(['__proto__', 'constructor', 'prototype'])(
    'a key named %s, and nothing is polluted',
    async (key) => {
      expect((await refusal(`a:\n  ${key}: {polluted: 1}\n`)).problems[0]).toMatchObject({
        path: `a.${key}`,
        reason: 'forbidden',
        at: { line: 2 },
      });
      expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    },
  );

  it.each(['.nan', '.NaN', '.inf', '-.INF', '1e400', '-1e400'])('C041: the number %s', async (number) => {
    const error = await refusal(`spec:\n  maxAttempts: ${number}\n`);
    expect(error.message).toBe(`shop.yaml:2: spec.maxAttempts: ${number} is not a finite number`);
  });

  it.each(['!!binary aGk=', '!!set {a, b}', '!!js/function "x"', '!!timestamp 2001-01-01', '!mine x'])(
    'the tag in %s',
    async (text) => {
      expect((await refusal(`a: ${text}\n`)).message).toContain('tags such as !!binary are not supported');
    },
  );

  it.each(['1: a', 'true: a', 'null: a', '? [a]\n: b', '? {a: 1}\n: b', '1.5: a'])(
    'the key in %j, which is no text',
    async (text) => {
      expect((await refusal(text)).message).toContain('a key must be text');
    },
  );

  it('a merge key, also where a %YAML 1.1 line asks for it', async () => {
    for (const head of ['', '%YAML 1.1\n---\n']) {
      const error = await refusal(`${head}base: &b {x: 1}\nuse:\n  <<: *b\n`);
      expect(error.problems[0]).toMatchObject({ reason: 'forbidden', path: 'use[<<]' });
    }
  });
});

describe('YAML is read as version 1.2 says', () => {
  it('on, yes and no are texts; octal-looking numbers are decimal', async () => {
    expect(await values('%YAML 1.1\n---\n{a: on, b: yes, c: no, d: 010, e: 1_000}')).toEqual([
      { a: 'on', b: 'yes', c: 'no', d: 10, e: '1_000' },
    ]);
  });

  it('an alias is a copy of what its anchor holds', async () => {
    const [value] = (await values('a: &x {n: [1]}\nb: *x\nc: *x\n')) as {
      a: unknown;
      b: unknown;
      c: unknown;
    }[];
    expect(value).toEqual({ a: { n: [1] }, b: { n: [1] }, c: { n: [1] } });
    expect(value?.b).not.toBe(value?.c);
  });

  it('an alias finds the newest anchor before it, and none after it or around it', async () => {
    expect(await values('a: &x 1\nb: &x 2\nc: *x\n')).toEqual([{ a: 1, b: 2, c: 2 }]);
    expect((await refusal('a: *x\nb: &x 1\n')).message).toContain('no anchor &x before *x');
    expect((await refusal('a: &x [1, *x]\n')).message).toContain('*x stands inside its own anchor');
    expect((await refusal('a: &x 1\n---\nb: *x\n')).problems[0]?.at?.document).toBe(2);
  });
});

describe('bounds', () => {
  const comment = (bytes: number) => `a: 1\n#${'x'.repeat(bytes - 6)}`;

  it('takes 1 MiB and refuses a byte more, naming the limit', async () => {
    expect(await values(comment(MAX_TEXT_BYTES))).toEqual([{ a: 1 }]);
    const error = await refusal(comment(MAX_TEXT_BYTES + 1));
    expect(error.code).toBe('BULWARK_DOCUMENT_TOO_LARGE');
    expect(error.message).toContain('1048577 bytes, more than the 1048576 (1 MiB) allowed');
  });

  it('counts bytes, not characters', async () => {
    expect((await refusal(`a: ${'é'.repeat(600_000)}`)).code).toBe('BULWARK_DOCUMENT_TOO_LARGE');
    expect((await refusal(`a: ${'😀'.repeat(300_000)}`)).code).toBe('BULWARK_DOCUMENT_TOO_LARGE');
  });

  it('takes 1,000 documents and refuses one more', async () => {
    expect(await values('a: 1\n---\n'.repeat(MAX_DOCUMENTS))).toHaveLength(MAX_DOCUMENTS);
    expect((await refusal('a: 1\n---\n'.repeat(MAX_DOCUMENTS + 1))).code).toBe('BULWARK_DOCUMENT_TOO_MANY');
    const items = JSON.stringify({
      kind: 'List',
      items: Array.from({ length: MAX_DOCUMENTS + 1 }, () => ({})),
    });
    expect((await refusal(items)).code).toBe('BULWARK_DOCUMENT_TOO_MANY');
  });

  it('takes 64 levels and refuses one more', async () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    expect(await values(nested(64))).toHaveLength(1);
    expect((await refusal(nested(65))).code).toMatch(/TOO_DEEP|TOO_MANY/);
  });

  it('takes 100 aliases and refuses one more', async () => {
    const aliases = (count: number) =>
      `x: &x 1\nl: [${Array.from({ length: count }, () => '*x').join(', ')}]\n`;
    expect(await values(aliases(100))).toHaveLength(1);
    expect((await refusal(aliases(101))).message).toContain('more than 100 aliases');
  });
});
