import { temporaryDirectory } from '@bulwark/testing';
import { openFileStore } from './file-store.js';
import { describeStore } from '../store.conformance.js';

describeStore('the embedded file', async () => {
  const directory = temporaryDirectory('store');
  const clock = { skippedMs: 0 };
  const historyLimit = 5000;
  const nowMs = () => performance.now() + clock.skippedMs;
  const store = await openFileStore({ directory: directory.path, historyLimit, nowMs });
  return {
    store,
    observer: store,
    compact: async () => {
      const commits = Array.from({ length: historyLimit * 1.1 + 1 }, (_, at) =>
        store.commit({ conditions: [], writes: [{ kind: 'put', key: `/filler/${at % 10}`, value: '' }] }),
      );
      await Promise.all(commits);
    },
    // Holder and store are one process: both stand still together.
    lapse: (ttlMs) => {
      clock.skippedMs += ttlMs + 1;
      return Promise.resolve();
    },
    dispose: async () => {
      await store.close();
      directory.remove();
    },
  };
});
