/** Milliseconds on the machine's monotonic clock: comparable between processes of one machine, and only there. */
export function machineMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}
