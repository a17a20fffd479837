import { defineConfig } from 'vitest/config';

/**
 * Vitest hands these to Node, for `require` too: with "import" or "module" among them CommonJS packages get the ES form of
 * theirs (protobufjs then loses `long`, and with it the last digits of 64-bit numbers).
 */
const source = { ssr: { resolve: { conditions: ['source', 'node'] } } };

/** `unit` needs no build and no server; `real` uses etcd and built processes; `fault` kills and pauses them. */
export default defineConfig({
  test: {
    projects: [
      {
        ...source,
        test: {
          name: 'unit',
          include: [
            'libs/**/*.test.ts',
            'apps/**/*.test.ts',
            'test/scenarios/**/*.test.ts',
            'test/bench/**/*.test.ts',
          ],
          exclude: ['**/*.real.test.ts', '**/dist/**', '**/node_modules/**'],
          testTimeout: 20_000,
        },
      },
      {
        ...source,
        test: {
          name: 'real',
          include: [
            'libs/**/*.real.test.ts',
            'apps/**/*.real.test.ts',
            'test/bench/**/*.real.test.ts',
            'test/e2e/**/*.test.ts',
          ],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
      {
        ...source,
        test: {
          name: 'fault',
          include: ['test/fault/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
