/** How the dependency answers one of its services; what is under way keeps the behaviour it began with. */
export type Behaviour =
  | { readonly kind: 'answer'; readonly afterMs: number }
  /** Takes the request and never answers. */
  | { readonly kind: 'hang' }
  /** Answers at once, but every `nth` call after `slowMs`. */
  | { readonly kind: 'slow-calls'; readonly nth: number; readonly slowMs: number }
  /** One worker does one call at a time, first come first served: `simplified` ones in the shorter time. */
  | { readonly kind: 'worker'; readonly fullMs: number; readonly simplifiedMs: number };

/** What the dependency itself saw of one service since its log began. */
export interface ServiceLog {
  readonly calls: number;
  /** The most that were ever under way at once. */
  readonly inFlightMax: number;
  readonly inFlight: number;
}

export type Command =
  | { readonly id: number; readonly do: 'behave'; readonly services: Readonly<Record<string, Behaviour>> }
  /** Answers the logs of all services that were called. */
  | { readonly id: number; readonly do: 'log' };

export type Reply =
  | { readonly kind: 'listening'; readonly port: number }
  | { readonly kind: 'done'; readonly id: number; readonly logs: Readonly<Record<string, ServiceLog>> };

/** The body of a full answer: when it was made, Unix milliseconds. */
export interface Body {
  readonly madeUnixMs: number;
}
