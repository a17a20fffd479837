import { Controller, Get, Inject, Param, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../errors/api-error.js';
import type { Metrics } from '../metrics/metrics.js';
import type { Health } from '../server/health.js';
import { VERSION } from '../server/version.js';
import { DISCOVERY } from './discovery.js';
import { HEALTH, METRICS } from './tokens.js';

const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** What is not about objects: discovery, health, metrics, version. */
@Controller()
export class SystemController {
  constructor(
    @Inject(HEALTH) private readonly health: Health,
    @Inject(METRICS) private readonly metrics: Metrics,
  ) {}

  @Get(['api', 'api/v1', 'apis', 'apis/bulwark.dev', 'apis/bulwark.dev/v1'])
  discovery(@Req() request: FastifyRequest): unknown {
    const path = request.url.split('?')[0]?.replace(/\/$/, '') ?? '';
    return DISCOVERY[path];
  }

  /** Namespaces are there by being named; kubectl asks for one before it believes that an object is not found. */
  @Get('api/v1/namespaces/:name')
  namespace(@Param('name') name: string): unknown {
    if (!NAMESPACE.test(name)) {
      throw new ApiError('NotFound', `namespaces "${name}" not found`, { name, kind: 'namespaces' });
    }
    return { kind: 'Namespace', apiVersion: 'v1', metadata: { name }, spec: {}, status: { phase: 'Active' } };
  }

  @Get('version')
  version(): unknown {
    const [major = '0', minor = '0'] = VERSION.split('.');
    return { major, minor, gitVersion: `v${VERSION}`, platform: `${process.platform}/${process.arch}` };
  }

  @Get(['healthz', 'livez'])
  healthz(): unknown {
    return { status: 'ok' };
  }

  @Get('readyz')
  async readyz(@Res() reply: FastifyReply): Promise<void> {
    const checks = this.health.checks();
    const ready = checks.every(({ ok }) => ok);
    await reply.code(ready ? 200 : 503).send({ status: ready ? 'ok' : 'not ready', checks });
  }

  @Get('metrics')
  async scrape(@Res() reply: FastifyReply): Promise<void> {
    await reply
      .header('Content-Type', this.metrics.registry.contentType)
      .send(await this.metrics.registry.metrics());
  }
}
