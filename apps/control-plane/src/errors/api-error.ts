/** One problem of a request, as `Status.details.causes` carries it. */
export interface Cause {
  readonly reason: string;
  /** Path of the field: "spec.timeout.attempt". */
  readonly field?: string;
  readonly message: string;
}

export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly Cause[];
  readonly retryAfterSeconds?: number;
}

export type Reason =
  | 'BadRequest'
  | 'Forbidden'
  | 'NotFound'
  | 'MethodNotAllowed'
  | 'NotAcceptable'
  | 'AlreadyExists'
  | 'Conflict'
  | 'Expired'
  | 'RequestEntityTooLarge'
  | 'UnsupportedMediaType'
  | 'Invalid'
  | 'TooManyRequests'
  | 'InternalError'
  | 'ServiceUnavailable'
  | 'Timeout';

const CODES: Readonly<Record<Reason, number>> = {
  BadRequest: 400,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  NotAcceptable: 406,
  AlreadyExists: 409,
  Conflict: 409,
  Expired: 410,
  RequestEntityTooLarge: 413,
  UnsupportedMediaType: 415,
  Invalid: 422,
  TooManyRequests: 429,
  InternalError: 500,
  ServiceUnavailable: 503,
  Timeout: 504,
};

/** What goes wrong in the API, in Kubernetes' words. The edges turn it into an HTTP `Status` or a gRPC status. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: number;

  constructor(
    readonly reason: Reason,
    message: string,
    readonly details: StatusDetails = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.code = CODES[reason];
  }
}

/** Names what an error is about. */
export interface Subject {
  readonly plural: string;
  readonly kind: string;
  readonly name: string;
}

const GROUP = 'bulwark.dev';

export const badRequest = (message: string): ApiError => new ApiError('BadRequest', message);

export function notFound({ plural, name }: Pick<Subject, 'plural' | 'name'>): ApiError {
  return new ApiError('NotFound', `${plural}.${GROUP} "${name}" not found`, {
    name,
    group: GROUP,
    kind: plural,
  });
}

export function alreadyExists({ plural, name }: Subject): ApiError {
  const details = { name, group: GROUP, kind: plural };
  return new ApiError('AlreadyExists', `${plural}.${GROUP} "${name}" already exists`, details);
}

export function conflict({ plural, name }: Subject, why?: string): ApiError {
  const because =
    why ?? 'the object has been modified; please apply your changes to the latest version and try again';
  return new ApiError(
    'Conflict',
    `Operation cannot be fulfilled on ${plural}.${GROUP} "${name}": ${because}`,
    { name, group: GROUP, kind: plural },
  );
}

/** 422: one cause a problem, all of them. kubectl prints the causes and takes the kind from the details. */
export function invalid({ kind, name }: Subject, causes: readonly Cause[]): ApiError {
  const list = causes.map(({ field, message }) => (field ? `${field}: ${message}` : message));
  const text = list.length === 1 ? list[0] : `[${list.join(', ')}]`;
  return new ApiError('Invalid', `${kind}.${GROUP} "${name}" is invalid: ${text}`, {
    name,
    group: GROUP,
    kind,
    causes,
  });
}

export function methodNotAllowed(plural: string, verb: string): ApiError {
  return new ApiError('MethodNotAllowed', `${verb} is not supported on ${plural}.${GROUP}`, {
    group: GROUP,
    kind: plural,
  });
}

export function expired(revision: number, oldest: number): ApiError {
  return new ApiError('Expired', `too old resource version: ${revision} (${oldest})`);
}

export function tooLargeVersion(revision: number, current: number): ApiError {
  return new ApiError('Timeout', `Too large resource version: ${revision}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  });
}

export function tooManyWatches(limit: number): ApiError {
  const message = `this replica serves ${limit} watches at once and all are taken; try again, try another replica, or raise --max-watches`;
  return new ApiError('TooManyRequests', message, { retryAfterSeconds: 1 });
}

export function unavailable(message: string, options?: ErrorOptions): ApiError {
  return new ApiError('ServiceUnavailable', message, { retryAfterSeconds: 1 }, options);
}
