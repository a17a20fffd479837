import { startProcess } from '@bulwark/testing';
import { describe, expect, it } from 'vitest';
import { repository } from './programs.js';

// A second try, since its figures are measured on whatever machine this is: a neighbour's burst must not fail the run.
describe('the tour', { retry: 1 }, () => {
  it('plays the whole story with twenty agent processes and two hundred agents, and every measurement holds', async () => {
    const tour = await startProcess({
      command: process.execPath,
      args: [`${repository}apps/demo/dist/main.js`, '--tour'],
    });
    const { code } = await tour.exited;
    console.log(tour.stdout());
    expect(tour.stdout()).toContain('measurements held');
    expect(code).toBe(0);
  }, 300_000);
});
