import type { InterceptorOptions } from '@grpc/grpc-js';
import { fromJSON, type ServiceDefinition } from '@grpc/proto-loader';
import { expect, it } from 'vitest';
import { CallMethod } from './call-method.js';

const field = { type: 'string', id: 1 };
const loaded = fromJSON({
  nested: {
    Text: { fields: { text: field } },
    Echo: { methods: { Unary: { requestType: 'Text', responseType: 'Text', comment: '' } } },
  },
});
const { Unary } = loaded['Echo'] as ServiceDefinition;
const ofJson = { ...Unary, responseDeserialize: (bytes: Buffer): unknown => JSON.parse(bytes.toString()) };
const method = (definition: unknown) => new CallMethod(definition as InterceptorOptions['method_definition']);

it('a message of Protocol Buffers is an object, and nothing else stands in for one', () => {
  const answers: unknown[] = [{ text: 'a' }, {}];
  const others: unknown[] = [undefined, null, 'a', 5, true, [{ text: 'a' }], () => ({}), new Error('a')];
  expect(answers.map((value) => method(Unary).isAnswer(value))).toEqual([true, true]);
  expect(others.filter((value) => method(Unary).isAnswer(value))).toEqual([]);
});

it('what a method of another encoding takes for a message is not known: any value may be one', () => {
  for (const value of ['a', 5, [1], { text: 'a' }]) expect(method(ofJson).isAnswer(value)).toBe(true);
  for (const value of [undefined, null]) expect(method(ofJson).isAnswer(value)).toBe(false);
});
