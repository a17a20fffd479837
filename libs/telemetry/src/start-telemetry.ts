import type { Logger } from './logger.js';

export interface Telemetry {
  readonly enabled: boolean;
  /** Sends what is left, for at most 2 s: a dead collector does not hold up the exit. Idempotent. */
  stop(): Promise<void>;
}

export interface TelemetryOptions {
  /** `service.name` unless OTEL_SERVICE_NAME says otherwise. */
  readonly serviceName: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly logger?: Logger;
}

const STOP_MS = 2_000;

/** Starts the OpenTelemetry SDK if OTEL_EXPORTER_OTLP_ENDPOINT is set; else does nothing and loads nothing. */
export async function startTelemetry(options: TelemetryOptions): Promise<Telemetry> {
  const env = options.env ?? process.env;
  if (!env['OTEL_EXPORTER_OTLP_ENDPOINT']) return { enabled: false, stop: () => Promise.resolve() };
  const { NodeSDK } = await import('@opentelemetry/sdk-node');
  const sdk = new NodeSDK({ serviceName: env['OTEL_SERVICE_NAME'] ?? options.serviceName });
  sdk.start();
  let stopped: Promise<void> | undefined;
  return { enabled: true, stop: () => (stopped ??= stopWithin(() => sdk.shutdown(), options.logger)) };
}

async function stopWithin(shutdown: () => Promise<void>, logger: Logger | undefined): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve('the collector did not take the last telemetry in time'), STOP_MS);
  });
  const done = shutdown().then(
    () => undefined,
    (error: unknown) => `the last telemetry was not sent: ${String(error)}`,
  );
  const problem = await Promise.race([done, late]);
  clearTimeout(timer);
  if (problem !== undefined) logger?.warn({}, problem);
}
