import { describe, expect, it } from 'vitest';
import { DocumentError } from './document-error.js';
import { readPolicies } from './read-policies.js';

const policy = (name: string, more = '') =>
  `apiVersion: bulwark.dev/v1\nkind: ResiliencePolicy\nmetadata: { name: ${name} }\nspec:\n  target: { service: x }\n${more}`;

const read = (...texts: string[]) =>
  readPolicies(
    texts.map((text, index) => ({ name: `f${index + 1}.yaml`, text })),
    { namespace: 'shop' },
  );

async function refusal(...texts: string[]): Promise<DocumentError> {
  const error: unknown = await read(...texts).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof DocumentError) return error;
  throw new Error(`not a DocumentError: ${String(error)}`);
}

describe('reading policies', () => {
  it('gives those of all texts in order, with their places', async () => {
    const policies = await read(`${policy('a')}---\n${policy('b')}`, policy('c'));
    expect(policies.map((one) => one.policy.metadata.name)).toEqual(['a', 'b', 'c']);
    expect(policies.map((one) => one.document.at)).toEqual([
      { source: 'f1.yaml', document: 1, line: 1 },
      { source: 'f1.yaml', document: 2, line: 7 },
      { source: 'f2.yaml', document: 1, line: 1 },
    ]);
  });

  it('C055: gives nothing when one of four is bad, and names file, line and path of each fault', async () => {
    const error = await refusal(
      `${policy('a')}---\n${policy('b', '  mode: Enforc\n  retires: 3\n')}---\n${policy('c')}`,
      policy('d', '  timeout: { total: 2 }\n'),
      'a: [',
    );
    expect(error.code).toBe('BULWARK_DOCUMENT_SYNTAX');
    expect(error.message.split('\n').map((line) => line.replace(/ \(allowed.*/, ''))).toEqual([
      'f1.yaml:12: spec.mode: "Enforc" is not allowed; did you mean Enforce?',
      'f1.yaml:13: spec.retires: retires is not a field here; did you mean spec.retry?',
      'f2.yaml:6: spec.timeout.total: 2 has no unit',
      expect.stringMatching(/^f3\.yaml:1: not valid YAML: /),
    ]);
  });

  it('refuses two documents of one name, the namespace of the request counted in', async () => {
    const other = policy('a').replace('{ name: a }', '{ name: a, namespace: other }');
    const same = policy('a').replace('{ name: a }', '{ name: a, namespace: shop }');
    expect(await read(policy('a'), other)).toHaveLength(2);
    expect((await refusal(policy('a'), same)).message).toBe(
      'f2.yaml:3: metadata.name: shop/a is in f1.yaml:1 already (allowed: each policy once)',
    );
  });

  it('says of another kind only that it is one', async () => {
    const error = await refusal('apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n');
    expect(error.message).toBe('f1.yaml:2: kind: ConfigMap is not a known kind (allowed: ResiliencePolicy)');
    expect(
      (await refusal(policy('a').replace('ResiliencePolicy', 'ResilencePolicy'))).problems[0]?.suggestion,
    ).toBe('ResiliencePolicy');
  });

  it('refuses documents that are no objects', async () => {
    expect((await refusal('just text')).message).toContain('is no object with apiVersion');
    expect((await refusal('[1, 2]')).message).toContain('is no object with apiVersion');
  });
});
