import { CommandError } from '../command-error.js';

/** `meta.k8s.io/v1` Status, the parts that are read here. */
export interface Status {
  readonly kind: 'Status';
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
  readonly details?: {
    readonly name?: string;
    readonly kind?: string;
    readonly causes?: readonly {
      readonly reason?: string;
      readonly message?: string;
      readonly field?: string;
    }[];
    readonly retryAfterSeconds?: number;
  };
}

export function isStatus(value: unknown): value is Status {
  return typeof value === 'object' && value !== null && (value as { kind?: unknown }).kind === 'Status';
}

/** The server answered, and the answer is no. */
export class ApiError extends CommandError {
  constructor(
    readonly code: number,
    readonly status: Status,
  ) {
    super(statusText(status, code));
    this.name = 'ApiError';
  }

  get reason(): string {
    return this.status.reason ?? '';
  }
}

/** In kubectl's words. */
function statusText(status: Status, code: number): string {
  const { details, message = `the server answered ${code}`, reason } = status;
  const causes = details?.causes ?? [];
  if (reason === 'Invalid' && details?.kind !== undefined && causes.length > 0) {
    const lines = causes.map(({ field, message: text = '' }) =>
      field === undefined ? text : `${field}: ${text}`,
    );
    const subject = `The ${details.kind} "${details.name ?? ''}" is invalid:`;
    return lines.length === 1
      ? `${subject} ${lines.join()}`
      : `${subject}\n${lines.map((line) => `* ${line}`).join('\n')}`;
  }
  if (code === 401)
    return `error: You must be logged in to the server (${reason ?? 'Unauthorized'}): ${message}`;
  return `Error from server (${reason ?? `HTTP ${code}`}): ${message}`;
}

/** Undefined = the body is something else. */
export function statusIn(body: string): Status | undefined {
  try {
    const parsed: unknown = JSON.parse(body);
    return isStatus(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** The Status of an answer that was not 2xx, whatever its body was. */
export function apiError(code: number, body: string): ApiError {
  const message = body.trim().slice(0, 200) || 'no body';
  return new ApiError(code, statusIn(body) ?? { kind: 'Status', message: `HTTP ${code}: ${message}` });
}
