import { describe, expect, it } from 'vitest';
import { createLogger, startTelemetry } from './index.js';

describe('the log', () => {
  it('is one JSON object a line, with the fields, the name and the sentence', () => {
    const lines: string[] = [];
    const logger = createLogger({ name: 'server', format: 'json', write: (line) => lines.push(line) });
    logger.child({ replica: 'a' }).info({ http: '127.0.0.1:1' }, 'listening');
    expect(lines).toHaveLength(1);
    const line = JSON.parse(lines[0]!) as Record<string, unknown>;
    expect(line).toMatchObject({ name: 'server', replica: 'a', http: '127.0.0.1:1', msg: 'listening' });
    expect(lines[0]).toMatch(/\}\n$/);
  });

  it('keeps the message and the stack of an error', () => {
    const lines: string[] = [];
    createLogger({ name: 'x', format: 'json', write: (line) => lines.push(line) }).error(
      { err: new Error('no disk') },
      'write failed',
    );
    expect(JSON.parse(lines[0]!)).toMatchObject({ msg: 'write failed', err: { message: 'no disk' } });
  });

  it('is readable text for a person', () => {
    const lines: string[] = [];
    const logger = createLogger({ name: 'x', format: 'text', write: (line) => lines.push(line) });
    logger.warn({ attempt: 3 }, 'the store is away');
    expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d WARN {2}the store is away attempt=3\n$/);
  });

  it('lets no value begin a line or steer the terminal', () => {
    const lines: string[] = [];
    const logger = createLogger({ name: 'x', format: 'text', write: (line) => lines.push(line) });
    const reason = 'bad\n12:00:00 INFO  all is well\u001b[2J\u009b31m';
    logger.warn({ reason, err: new Error(reason) }, 'refused\r');
    expect(lines[0]).toMatch(
      /^\S+ WARN {2}refused\\r reason=bad\\n12:00:00 INFO {2}all is well\\u001b\[2J\?31m\n/,
    );
    expect(lines[0]).not.toMatch(/[\r\u001b\u009b]/);
    for (const line of lines[0]?.trimEnd().split('\n').slice(1) ?? []) expect(line).toMatch(/^ {2}/);
  });

  it('leaves out what is below its level', () => {
    const lines: string[] = [];
    const logger = createLogger({
      name: 'x',
      level: 'warn',
      format: 'json',
      write: (line) => lines.push(line),
    });
    logger.info({}, 'quiet');
    expect(lines).toEqual([]);
  });
});

describe('telemetry', () => {
  it('does not start when no collector is named', async () => {
    const telemetry = await startTelemetry({ serviceName: 'x', env: {} });
    expect(telemetry.enabled).toBe(false);
    await telemetry.stop();
  });
});
