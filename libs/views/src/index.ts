export type * from './objects.js';
export { API_GROUP, API_PATH, RESOURCES, findResource, objectPath, resourceOfKind } from './resources.js';
export type { Plural, Resource } from './resources.js';
export { columnsFor, inOrder, rowFor, tableFor, usualWidth } from './table.js';
export type { ObjectOf, Table, TableColumn, TableOptions, TableRow } from './table.js';
export { admittedShare, decidedShare, effectiveState, worstFirst, type EffectiveState } from './breakers.js';
export { thresholdText } from './policies.js';
export { ageText, durationText, shortSpanText } from './age.js';
export { EMPTY, NO_DATA, percentText, rateText } from './numbers.js';
