import 'reflect-metadata';
import type { Logger } from '@bulwark/telemetry';
import { Module, type DynamicModule, type LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Address, ServerConfig } from '../config/server-config.js';
import { statusOf } from '../errors/http-status.js';
import { unavailable } from '../errors/api-error.js';
import type { ForceApi } from '../fleet/force-api.js';
import type { Metrics } from '../metrics/metrics.js';
import type { Health } from '../server/health.js';
import { refusedHost } from './host-rule.js';
import type { ResourceApi } from './resource-api.js';
import { ResourcesController } from './resources.controller.js';
import { StatusFilter } from './status.filter.js';
import { SystemController } from './system.controller.js';
import { answerBadPath, answerNoRequest } from './unreadable.js';
import { FORCE_API, HEALTH, METRICS, RESOURCE_API } from './tokens.js';

export interface HttpParts {
  readonly config: Pick<ServerConfig, 'http'>;
  readonly api: ResourceApi;
  readonly force: ForceApi;
  readonly health: Health;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

@Module({ controllers: [SystemController, ResourcesController] })
class HttpModule {
  static with(parts: HttpParts): DynamicModule {
    return {
      module: HttpModule,
      providers: [
        { provide: RESOURCE_API, useFactory: () => parts.api },
        { provide: FORCE_API, useFactory: () => parts.force },
        { provide: HEALTH, useFactory: () => parts.health },
        { provide: METRICS, useFactory: () => parts.metrics },
      ],
    };
  }
}

/** What went through the HTTP side, for the log of a shutdown. */
export interface Traffic {
  accepted: number;
  completed: number;
  refused: number;
  /** Requests whose answer has not ended, watches included. */
  open: number;
}

export interface HttpApp {
  readonly app: NestFastifyApplication;
  readonly traffic: Readonly<Traffic>;
  /** Past the framework, which would log a failure in words of its own. */
  listen(address: Address): Promise<unknown>;
}

const BODY_LIMIT = 1024 * 1024;
/** Reachable while the replica is leaving. */
const ALWAYS = new Set(['/healthz', '/livez', '/readyz', '/metrics']);

export async function createHttpApp(parts: HttpParts): Promise<HttpApp> {
  const adapter = new FastifyAdapter({
    bodyLimit: BODY_LIMIT,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 512 },
    requestTimeout: 30_000,
    keepAliveTimeout: 72_000,
    exposeHeadRoutes: true,
    frameworkErrors: answerBadPath,
    clientErrorHandler: answerNoRequest,
  });
  const app = await NestFactory.create<NestFastifyApplication>(HttpModule.with(parts), adapter, {
    bodyParser: false,
    logger: nestLogger(parts.logger),
    abortOnError: false,
  });
  app.useGlobalFilters(new StatusFilter(parts.logger));
  const fastify: FastifyInstance = adapter.getInstance();
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  const traffic = watchTraffic(fastify, parts);
  await app.init();
  return { app, traffic, listen: ({ host, port }) => fastify.listen({ host, port }) };
}

function watchTraffic(fastify: FastifyInstance, { config, health, metrics }: HttpParts): Traffic {
  const traffic: Traffic = { accepted: 0, completed: 0, refused: 0, open: 0 };
  fastify.addHook('onRequest', async (request, reply) => {
    const foreign = refusedHost(request.headers.host, config.http);
    if (foreign !== undefined) return reply.code(foreign.code).send(statusOf(foreign));
    if (health.isLeaving && !ALWAYS.has(request.url.split('?')[0] ?? '')) {
      traffic.refused += 1;
      return refuse(reply);
    }
    traffic.accepted += 1;
    traffic.open += 1;
    reply.raw.once('close', () => {
      traffic.open -= 1;
      if (reply.raw.writableFinished) traffic.completed += 1;
    });
    return undefined;
  });
  fastify.addHook('onResponse', async (request, reply) => {
    const { plural = 'none' } = (request.params ?? {}) as { plural?: string };
    const known = /^(resiliencepolicies|breakers|agents)$/.test(plural) ? plural : 'other';
    const resource = plural === 'none' ? 'none' : known;
    if ((request.query as { watch?: string } | undefined)?.watch !== undefined) return;
    metrics.http.observe(
      { method: request.method, resource, code: String(reply.statusCode) },
      reply.elapsedTime / 1_000,
    );
    await Promise.resolve();
  });
  return traffic;
}

/** On existing connections too: the client is told to open another one, elsewhere. */
async function refuse(reply: FastifyReply): Promise<FastifyReply> {
  const error = unavailable('this replica is shutting down; try another one');
  void reply.header('Connection', 'close').header('Retry-After', '1').code(error.code);
  return reply.send(statusOf(error));
}

function nestLogger(logger: Logger): LoggerService {
  const quiet = (): void => undefined;
  return {
    log: quiet,
    verbose: quiet,
    debug: quiet,
    warn: (message: unknown) => logger.warn({}, String(message)),
    error: (message: unknown) => logger.error({}, String(message)),
    fatal: (message: unknown) => logger.error({}, String(message)),
  };
}
