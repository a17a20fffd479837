import type { Example } from './example.js';

export const examples: readonly Example[] = [
  {
    name: 'fetch',
    shows: 'bulwark.fetch: retries, the last good answer, an open breaker',
    load: () => import('./fetch/example.js'),
  },
  {
    name: 'undici',
    shows: 'an undici dispatcher under the policies: attempts, bodies that break off, a full bulkhead',
    load: () => import('./undici/example.js'),
  },
  {
    name: 'grpc',
    shows: 'grpc-js: retries, a stream that breaks off, the last good answer, an open breaker',
    load: () => import('./grpc/example.js'),
  },
  {
    name: 'nest',
    shows: 'a Nest application: deadlines handed on, degraded parts told upward, guarded methods',
    load: () => import('./nest/example.js'),
  },
];
