import { Controller, Delete, Get, Inject, Patch, Post, Put, Req, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { ApiRequest, ResourceApi } from './resource-api.js';
import type { ForceApi } from '../fleet/force-api.js';
import { FORCE_API, RESOURCE_API } from './tokens.js';

const ALL = 'apis/bulwark.dev/v1/:plural';
const COLLECTION = 'apis/bulwark.dev/v1/namespaces/:namespace/:plural';
const OBJECT = `${COLLECTION}/:name`;

/** The objects of every kind. */
@Controller()
export class ResourcesController {
  constructor(
    @Inject(RESOURCE_API) private readonly api: ResourceApi,
    @Inject(FORCE_API) private readonly breakers: ForceApi,
  ) {}

  @Get([ALL, COLLECTION])
  list(@Req() request: ApiRequest, @Res() reply: FastifyReply): Promise<void> {
    return this.api.list(request, reply);
  }

  @Post([ALL, COLLECTION])
  create(@Req() request: ApiRequest, @Res() reply: FastifyReply): Promise<void> {
    return this.api.create(request, reply);
  }

  @Get(OBJECT)
  get(@Req() request: ApiRequest, @Res() reply: FastifyReply): Promise<void> {
    return this.api.get(request, reply);
  }

  @Put(OBJECT)
  replace(@Req() request: ApiRequest, @Res() reply: FastifyReply): Promise<void> {
    return this.api.replace(request, reply);
  }

  @Put('apis/bulwark.dev/v1/namespaces/:namespace/breakers/:name/force')
  force(@Req() request: ApiRequest, @Res() reply: FastifyReply): Promise<void> {
    return this.breakers.force(request, reply);
  }

  @Patch(OBJECT)
  patch(@Req() request: ApiRequest, @Res() reply: FastifyReply): Promise<void> {
    return this.api.patch(request, reply);
  }

  @Delete(OBJECT)
  delete(@Req() request: ApiRequest, @Res() reply: FastifyReply): Promise<void> {
    return this.api.delete(request, reply);
  }
}
