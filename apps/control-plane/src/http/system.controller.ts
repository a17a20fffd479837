import { Controller, Get, Inject, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Metrics } from '../metrics/metrics.js';
import type { Health } from '../server/health.js';
import { VERSION } from '../server/version.js';
import { DISCOVERY } from './discovery.js';
import { HEALTH, METRICS } from './tokens.js';

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
