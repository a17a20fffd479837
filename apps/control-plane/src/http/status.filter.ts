import { Catch, HttpException, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Logger } from '@bulwark/telemetry';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError, badRequest } from '../errors/api-error.js';
import { statusOf } from '../errors/http-status.js';
import { toApiError } from '../errors/store-api-error.js';

/** Every error of the HTTP side leaves as a `Status`; what nobody foresaw is logged and told as an InternalError. */
@Catch()
export class StatusFilter implements ExceptionFilter {
  constructor(private readonly logger: Logger) {}

  catch(exception: unknown, host: ArgumentsHost): void {
    const reply = host.switchToHttp().getResponse<FastifyReply>();
    const request = host.switchToHttp().getRequest<FastifyRequest>();
    const error = fromFramework(exception, request) ?? toApiError(exception);
    if (error.code >= 500) {
      const fields = { err: exception, method: request.method, path: request.url.split('?')[0] };
      this.logger[error.reason === 'InternalError' ? 'error' : 'warn'](fields, 'a request failed');
    }
    if (reply.sent || reply.raw.headersSent) return void reply.raw.destroy();
    const retryAfter = error.details.retryAfterSeconds;
    if (retryAfter !== undefined) void reply.header('Retry-After', String(retryAfter));
    void reply.code(error.code).type('application/json').send(statusOf(error));
  }
}

/** The framework's own errors in the API's words. */
function fromFramework(exception: unknown, request: FastifyRequest): ApiError | undefined {
  const status = statusCodeOf(exception);
  if (status === 404) return new ApiError('NotFound', 'the server could not find the requested resource');
  if (status === 405) return new ApiError('MethodNotAllowed', `${request.method} is not supported here`);
  if (status === 413) return new ApiError('RequestEntityTooLarge', 'the body is larger than 1 MiB');
  if (status === 415)
    return new ApiError('UnsupportedMediaType', 'the media type of the body is not supported');
  if (status !== undefined && status >= 400 && status < 500)
    return badRequest('the request cannot be understood');
  return undefined;
}

function statusCodeOf(exception: unknown): number | undefined {
  if (exception instanceof ApiError) return undefined;
  if (exception instanceof HttpException) return exception.getStatus();
  const code = (exception as { statusCode?: unknown } | null)?.statusCode;
  return typeof code === 'number' ? code : undefined;
}
