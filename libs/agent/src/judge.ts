import type { CallAdapter, Judgement } from '@bulwark/resilience';
import { readAnswerMarks, type ReadHeader } from './headers.js';
import { judgeGrpcError } from './judge-grpc.js';
import { transportFault } from './transport-fault.js';

/** What an HTTP answer means. */
export function judgeHttp(status: number, header: ReadHeader, nowUnixMs: number): Judgement {
  const marks = readAnswerMarks(header, nowUnixMs);
  return {
    httpStatus: status,
    noRetry: marks.noRetry,
    ignore: marks.rejectedBelow,
    ...(marks.retryAfterMs !== undefined && { retryAfterMs: marks.retryAfterMs }),
  };
}

/**
 * What a thrown error means when nobody said: a transport fault, an HTTP or gRPC status where the error carries one,
 * else a plain failure of the dependency.
 */
export function judgeError(error: unknown): Judgement {
  const transport = transportFault(error);
  if (transport === 'exhausted') return { failure: true, ignore: true };
  if (transport !== undefined) return { transport };
  if (typeof error !== 'object' || error === null) return { failure: true };
  const httpStatus = numberIn(error, 'status') ?? numberIn(error, 'statusCode');
  if (httpStatus !== undefined && httpStatus >= 100 && httpStatus <= 599) return { httpStatus };
  return judgeGrpcError(error) ?? { failure: true };
}

const SUCCESS: Judgement = {};
/** A static answer is text: without the caller's own fallback it is no value of the call's. */
const PLAIN: CallAdapter<unknown> = { judge: () => SUCCESS, judgeError, makesStatic: false };

/** The adapter of `bulwark.call`: a value is a success, an error is judged. `judge` overrides it where it answers. */
export function plainAdapter<T>(
  judge?: (end: { value: T } | { error: unknown }) => Judgement | undefined,
): CallAdapter<T> {
  if (judge === undefined) return PLAIN as CallAdapter<T>;
  return {
    makesStatic: false,
    judge: (value) => judge({ value }) ?? SUCCESS,
    judgeError: (error) => judge({ error }) ?? judgeError(error),
  };
}

function numberIn(value: object, field: string): number | undefined {
  const found: unknown = (value as Record<string, unknown>)[field];
  return typeof found === 'number' ? found : undefined;
}
