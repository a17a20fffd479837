import {
  Inject,
  Module,
  type DynamicModule,
  type FactoryProvider,
  type MiddlewareConsumer,
  type ModuleMetadata,
  type NestModule,
  type OnApplicationShutdown,
  type Provider,
} from '@nestjs/common';
import { APP_FILTER, HttpAdapterHost } from '@nestjs/core';
import { Bulwark } from '../bulwark.js';
import { connect } from '../connect.js';
import { isLoopbackAddress } from '../loopback-address.js';
import { answeringMiddleware, type Trusted } from './answering-middleware.js';
import { RefusalFilter } from './refusal-filter.js';

export type BulwarkModuleOptions = Parameters<typeof connect>[0] & {
  /**
   * Whose deadlines and attempt numbers are believed, by the address of the connection's other end; undefined = it is not
   * known. Default: loopback only. A proxy on this machine that relays strangers' headers is trusted by that, too.
   */
  readonly trusted?: Trusted;
};

export interface BulwarkAsyncOptions {
  readonly imports?: ModuleMetadata['imports'];
  readonly inject?: FactoryProvider['inject'];
  /** Its arguments are what `inject` names. */
  readonly useFactory: (...injected: never[]) => BulwarkModuleOptions | Promise<BulwarkModuleOptions>;
}

const OPTIONS = Symbol('bulwark options');

/**
 * One agent in a Nest application: connected before the application starts, closed after its last answer. Every
 * HTTP request is answered within `bulwark.answering`, refusals that reach the edge become 503 and 504, and `Bulwark` can
 * be injected everywhere.
 */
export class BulwarkModule implements NestModule {
  constructor(
    private readonly bulwark: Bulwark,
    private readonly options: BulwarkModuleOptions,
  ) {}

  static forRoot(options: BulwarkModuleOptions): DynamicModule {
    return dynamicModule([{ provide: OPTIONS, useValue: options }]);
  }

  static forRootAsync({ imports = [], inject = [], useFactory }: BulwarkAsyncOptions): DynamicModule {
    return { ...dynamicModule([{ provide: OPTIONS, inject, useFactory }]), imports };
  }

  configure(consumer: MiddlewareConsumer): void {
    const { trusted = isLoopbackAddress } = this.options;
    consumer.apply(answeringMiddleware(this.bulwark, trusted)).forRoutes('{*path}');
  }
}
Module({})(BulwarkModule);
Inject(Bulwark)(BulwarkModule, undefined, 0);
Inject(OPTIONS)(BulwarkModule, undefined, 1);

/** Ends the agent's stream when the application's server has closed: its last calls are still counted. */
class AgentLifetime implements OnApplicationShutdown {
  constructor(private readonly bulwark: Bulwark) {}

  onApplicationShutdown(): Promise<void> {
    return this.bulwark.close();
  }
}

/** `trusted` is this module's own. */
function connected({ trusted: _trusted, ...options }: BulwarkModuleOptions): Promise<Bulwark> {
  return connect(options);
}

function dynamicModule(options: Provider[]): DynamicModule {
  return {
    module: BulwarkModule,
    global: true,
    providers: [
      ...options,
      { provide: Bulwark, inject: [OPTIONS], useFactory: connected },
      {
        provide: AgentLifetime,
        inject: [Bulwark],
        useFactory: (bulwark: Bulwark) => new AgentLifetime(bulwark),
      },
      {
        provide: APP_FILTER,
        inject: [HttpAdapterHost],
        useFactory: (host: HttpAdapterHost) => new RefusalFilter(host),
      },
    ],
    exports: [Bulwark],
  };
}
