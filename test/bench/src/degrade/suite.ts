import type { BenchContext } from '../harness.js';

export const name = 'degrade';

export async function run({ report }: BenchContext): Promise<void> {
  report({ name: 'placeholder', unit: '', rounds: [1] });
  await Promise.resolve();
}
