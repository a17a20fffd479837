export { createLogger, type Logger, type LoggerOptions, type LogFormat, type LogLevel } from './logger.js';
export { startTelemetry, type Telemetry, type TelemetryOptions } from './start-telemetry.js';
