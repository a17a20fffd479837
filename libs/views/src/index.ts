export type * from './objects.js';
