import { eventually, temporaryDirectory } from '@bulwark/testing';
import { mkdir, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { BypassFile } from './bypass-file.js';
import { Bypass } from './bypass.js';
import { silentLogger } from './logger.js';

const MINUTE = 60_000;
const ends: (() => void)[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const end of ends.splice(0)) end();
});

/** Real files; the clocks are the test's. */
function world() {
  const directory = temporaryDirectory();
  const path = join(directory.path, 'bypass');
  const clock = { monotonicMs: 5_000, unixMs: Date.now() };
  const said: string[] = [];
  const fields: object[] = [];
  const log = (about: object, message: string): void => {
    said.push(message);
    fields.push(about);
  };
  const unixMs = () => clock.unixMs;
  const bypass = new Bypass({
    nowMs: () => clock.monotonicMs,
    unixMs,
    logger: { ...silentLogger, warn: log, error: log },
    file: new BypassFile(path, unixMs),
  });
  ends.push(() => {
    bypass.close();
    directory.remove();
  });
  const write = async (text: string, ageMs = 0): Promise<void> => {
    await writeFile(path, text);
    const modified = (clock.unixMs - ageMs) / 1_000;
    await utimes(path, modified, modified);
  };
  const pass = (ms: number): void => {
    clock.monotonicMs += ms;
    clock.unixMs += ms;
  };
  return { path, clock, said, fields, bypass, write, pass };
}

describe('a bypass by a file', () => {
  it('holds from the first call on when the file is there at the start, and ends by itself', async () => {
    const { bypass, write, pass, said } = world();
    await write('30m\nlooking into it', 10 * MINUTE);
    await bypass.start();
    expect(bypass.passes()).toBe(true);
    expect(bypass.state()?.reason).toBe('looking into it');
    expect(said).toEqual([expect.stringContaining('BYPASS') as string]);
    pass(20 * MINUTE - 1_000);
    expect(bypass.passes()).toBe(true);
    pass(1_000);
    expect([bypass.passes(), bypass.state()]).toEqual([false, undefined]);
    await eventually(() => said.at(-1)?.includes('has ended'));
  });

  it('begins within about a second and ends within about a second of the file’s coming and going', async () => {
    const { bypass, write, path, said, fields } = world();
    await bypass.start();
    expect(bypass.active).toBe(false);
    await write('5m\nwhy not');
    await eventually(() => bypass.active, { withinMs: 4_000 });
    expect(fields[0]).toMatchObject({ reason: 'why not' });
    bypass.passes();
    await rm(path);
    await eventually(() => !bypass.active, { withinMs: 4_000 });
    expect([said.at(-1), fields.at(-1)]).toEqual(['bypass has ended: calls are guarded again', { calls: 1 }]);
  });

  it('is not moved by a jump of the wall clock once it was read', async () => {
    const { bypass, write, clock, pass } = world();
    await write('30m');
    await bypass.start();
    clock.unixMs += 3_600_000;
    pass(29 * MINUTE);
    expect(bypass.active).toBe(true);
    clock.unixMs -= 7_200_000;
    pass(MINUTE);
    expect(bypass.active).toBe(false);
  });

  it('reminds every minute', async () => {
    const { bypass, write, pass, said } = world();
    await write('30m');
    await bypass.start();
    for (let minute = 1; minute <= 2; minute += 1) {
      pass(MINUTE);
      await eventually(() => said.filter((line) => line.includes('goes on')).length === minute, {
        withinMs: 4_000,
      });
    }
  });

  it('begins anew when the file is touched, and not because it still lies there', async () => {
    const { bypass, write, pass, said } = world();
    await write('1m', 5 * MINUTE);
    await bypass.start();
    expect(bypass.active).toBe(false);
    expect(said).toEqual([expect.stringContaining('time has ended') as string]);
    pass(1_000);
    await write('1m');
    await eventually(() => bypass.active, { withinMs: 4_000 });
  });

  it('does not begin by text that is none, a directory or a flood, and says so once', async () => {
    for (const make of [
      (path: string) => writeFile(path, 'please'),
      (path: string) => mkdir(path),
      (path: string) => writeFile(path, `5m\n${'x'.repeat(5_000)}`),
    ]) {
      const { bypass, path, said } = world();
      await make(path);
      await bypass.start();
      await bypass.start();
      expect(bypass.active).toBe(false);
      expect(said).toEqual([expect.stringContaining('of no use') as string]);
    }
  });

  it('ends when what it says becomes unreadable', async () => {
    const { bypass, write, said } = world();
    await write('30m');
    await bypass.start();
    await write('thirty minutes');
    await eventually(() => !bypass.active, { withinMs: 4_000 });
    expect(said.join()).toMatch(/of no use[^]*has ended/);
  });
});

describe('a bypass by the program', () => {
  it('lasts its time, at most a day, and ends by 0', () => {
    const { bypass, pass } = world();
    for (const wrong of [-1, 24 * 3_600_000 + 1, NaN])
      expect(() => bypass.set(wrong, '')).toThrow(RangeError);
    bypass.set(MINUTE, 'a test');
    expect(bypass.state()).toMatchObject({ reason: 'a test' });
    pass(MINUTE);
    expect(bypass.active).toBe(false);
    bypass.set(MINUTE, '');
    bypass.set(0, '');
    expect(bypass.active).toBe(false);
  });

  it('shows control characters of its reason escaped, wherever that came from', async () => {
    const { bypass, write } = world();
    bypass.set(MINUTE, 'a\nb\u001b[2J\u009b31m');
    expect(bypass.state()?.reason).toBe('a\\x0ab\\x1b[2J\\x9b31m');
    await write('2m\nred \u001b[31m');
    await bypass.start();
    expect(bypass.state()?.reason).toBe('red \\x1b[31m');
  });

  it('and one by a file end each by itself: the longer one counts', async () => {
    const { bypass, write, pass } = world();
    await write('2m\nfile');
    await bypass.start();
    bypass.set(5 * MINUTE, 'program');
    expect(bypass.state()?.reason).toBe('program');
    bypass.set(0, '');
    expect(bypass.state()?.reason).toBe('file');
    bypass.set(MINUTE, 'program');
    pass(90_000);
    expect(bypass.state()?.reason).toBe('file');
  });
});
