import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { HttpAdapterHost } from '@nestjs/core';
import { DeadlineError, RejectedError } from '../agent-error.js';
import { HEADER, rejectionProblem, retryAfterSeconds, timeoutProblem } from '../headers.js';

/**
 * A refusal nobody caught is this service's answer: 503 or 504 with the reason, so that the layer above neither retries
 * it nor counts it as this service's failure.
 */
export class RefusalFilter implements ExceptionFilter<RejectedError | DeadlineError> {
  constructor(private readonly host: HttpAdapterHost) {}

  catch(error: RejectedError | DeadlineError, host: ArgumentsHost): void {
    // Calls of other kinds have no status to answer with.
    if (host.getType() !== 'http') throw error;
    const { httpAdapter } = this.host;
    const response: unknown = host.switchToHttp().getResponse();
    const rejected = error instanceof RejectedError;
    const problem = rejected ? rejectionProblem(error.service, error) : timeoutProblem(error);
    const headers: Record<string, string> = {
      'content-type': 'application/problem+json',
      ...(rejected && {
        [HEADER.rejected]: error.reason,
        'retry-after': retryAfterSeconds(error.retryAfterMs),
      }),
    };
    for (const [name, value] of Object.entries(headers)) httpAdapter.setHeader(response, name, value);
    httpAdapter.reply(response, JSON.stringify(problem), problem.status);
  }
}
Catch(RejectedError, DeadlineError)(RefusalFilter);
