/** Text made to be slow, big or confusing is refused with a DocumentError, quickly. */
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { DocumentError } from './document-error.js';
import { parseDocuments } from './documents.js';
import { EXAMPLE_POLICY } from './example.js';
import { readPolicies } from './read-policies.js';
import { validatePolicy } from './validate.js';

/**
 * Processor time, so that other work on the machine does not count; measured 0 to 600 ms. Without the bounds most of
 * these take 2 to 12 s.
 */
const LIMIT_MS = 1_500;

async function timed(
  text: string,
): Promise<{ readonly ms: number; readonly error: DocumentError | undefined }> {
  const begun = process.cpuUsage();
  let error: DocumentError | undefined;
  try {
    await parseDocuments(text, { source: 'x' });
  } catch (thrown) {
    if (!(thrown instanceof DocumentError)) throw thrown;
    error = thrown;
  }
  const { user, system } = process.cpuUsage(begun);
  return { ms: (user + system) / 1_000, error };
}

const lines = (count: number, line: (i: number) => string) =>
  Array.from({ length: count }, (_, i) => line(i)).join('\n');

function aliasBomb(levels: number, width: number): string {
  return ['a0: &a0 [x]']
    .concat(
      Array.from(
        { length: levels },
        (_, i) => `a${i + 1}: &a${i + 1} [${Array(width).fill(`*a${i}`).join()}]`,
      ),
    )
    .join('\n');
}

// The package is loaded on first use; the loading is not what is measured.
beforeAll(() => timed('a: 1'));

describe('C043: refused quickly', () => {
  it.each([
    ['an alias bomb of ten levels of nine', aliasBomb(10, 9)],
    ['an alias bomb few wide and many deep', aliasBomb(60, 2)],
    ['500 merge keys', `base: &b {x: 1}\n${lines(500, (i) => `k${i}:\n  <<: *b`)}`],
    ['lists nested 10,000 deep', '['.repeat(10_000) + ']'.repeat(10_000)],
    ['maps nested 10,000 deep', '{a: '.repeat(10_000) + '1' + '}'.repeat(10_000)],
    ['dashes nested 10,000 deep', `${'- '.repeat(10_000)}x`],
    ['question marks nested 10,000 deep', '? '.repeat(10_000)],
    ['indentation 1,400 deep', lines(1_400, (i) => `${' '.repeat(i)}a:`)],
    ['10 MB of YAML', 'a: b\n'.repeat(2_000_000)],
    ['50 MB of one text', 'x'.repeat(50_000_000)],
    ['100,000 documents', '---\na: 1\n'.repeat(100_000)],
    ['250,000 empty documents', '---\n'.repeat(250_000)],
    ['a megabyte of stray brackets', '[]'.repeat(500_000)],
    ['a megabyte of stray commas', `[${','.repeat(1_000_000)}`],
    ['a megabyte of quotes', '"'.repeat(1_000_000)],
    ['300,000 anchors', '&a '.repeat(300_000)],
    ['300,000 tags', '!a '.repeat(300_000)],
    ['300,000 directives', '%a\n'.repeat(300_000)],
    ['120,000 keys', lines(120_000, (i) => `${i}k:`)],
    ['500,000 list entries', '-\n'.repeat(500_000)],
    ['broken indentation 70,000 times', '- a: 1\n b: 2\n'.repeat(70_000)],
    ['a key as long as the text', `${'a '.repeat(500_000)}: 1`],
  ])('%s', async (_, text) => {
    const { ms, error } = await timed(text);
    expect(error?.code).toMatch(/^BULWARK_DOCUMENT_/);
    expect(error?.message.length).toBeLessThan(20_000);
    expect(ms).toBeLessThan(LIMIT_MS);
  });

  it('a map of 40,000 keys is read in time that grows with its length alone', async () => {
    const { ms, error } = await timed(lines(40_000, (i) => `key${i}: 1`));
    expect(error).toBeUndefined();
    // The package's own check of duplicate keys, which is quadratic, takes 15 s for it.
    expect(ms).toBeLessThan(3 * LIMIT_MS);
  });
});

describe('an object of 50,000 unknown fields', () => {
  it('is refused quickly too', () => {
    const value = Object.fromEntries(Array.from({ length: 49_000 }, (_, i) => [`key${i}`, 1]));
    const begun = process.cpuUsage();
    expect(validatePolicy(value).ok).toBe(false);
    expect(process.cpuUsage(begun).user / 1_000).toBeLessThan(LIMIT_MS);
  });
});

describe('any text', () => {
  const alphabet = [
    ...':-?,[]{}#&*!|>\'"%@` \n\r\t',
    '---\n',
    '...\n',
    'a: ',
    '- ',
    '<<: ',
    '&a ',
    '*a ',
    '!!x ',
  ];
  const yamlish = fc.array(fc.oneof(fc.constantFrom(...alphabet), fc.string({ maxLength: 4 })), {
    maxLength: 200,
  });

  it('gives documents or a DocumentError, and nothing else', async () => {
    await fc.assert(
      fc.asyncProperty(yamlish, async (parts) => {
        const { ms } = await timed(parts.join(''));
        expect(ms).toBeLessThan(LIMIT_MS);
      }),
      { numRuns: 1_000 },
    );
  });

  it('a valid policy with random damage is read whole or refused with a place in the text', async () => {
    const damage = fc.record({
      at: fc.nat(EXAMPLE_POLICY.length),
      remove: fc.nat(30),
      insert: fc.oneof(fc.constantFrom(...alphabet), fc.string({ maxLength: 8 }), fc.constant('')),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(damage, { minLength: 1, maxLength: 4 }), async (hits) => {
        let text = EXAMPLE_POLICY;
        for (const { at, remove, insert } of hits)
          text = text.slice(0, at) + insert + text.slice(at + remove);
        try {
          await readPolicies([{ name: 'f.yaml', text }], { namespace: 'default' });
        } catch (error) {
          if (!(error instanceof DocumentError)) throw error;
          expect(error.problems.length).toBeGreaterThan(0);
          for (const one of error.problems) expect(one.at?.source).toBe('f.yaml');
        }
      }),
      { numRuns: 500 },
    );
  });
});
