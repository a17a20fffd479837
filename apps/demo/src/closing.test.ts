import { expect, it } from 'vitest';
import { Closing } from './closing.js';

it('stops in the reverse order of the start, once, and goes on after one that cannot be stopped', async () => {
  const stopped: string[] = [];
  const closing = new Closing();
  closing.add(() => Promise.resolve(stopped.push('first')));
  closing.add(() => Promise.reject(new Error('stuck')));
  closing.add(() => Promise.resolve(stopped.push('last')));
  await Promise.all([closing.run(), closing.run()]);
  expect(stopped).toEqual(['last', 'first']);
});

it('stops what began while the end came', async () => {
  const stopped: string[] = [];
  const closing = new Closing();
  await closing.run();
  closing.add(() => Promise.resolve(stopped.push('late')));
  await closing.run();
  expect(stopped).toEqual(['late']);
});
