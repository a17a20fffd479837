import type { Example } from './example.js';

export const examples: readonly Example[] = [
  {
    name: 'fetch',
    shows: 'bulwark.fetch: retries, the last good answer, an open breaker',
    load: () => import('./fetch/example.js'),
  },
];
