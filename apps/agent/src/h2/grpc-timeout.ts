const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};
/** The protocol allows eight digits. */
const MAX_NUMBER = 99_999_999;

/** The caller's deadline in milliseconds; junk is as if it were not there. */
export function parseGrpcTimeout(value: string | undefined): number | undefined {
  const match = value === undefined ? null : /^(\d{1,8})([HMSmun])$/.exec(value);
  const unitMs = UNIT_MS[match?.[2] ?? ''];
  return match === null || unitMs === undefined ? undefined : Number(match[1]) * unitMs;
}

/** For the next hop, in the finest common unit that holds it; rounded down, since nobody may take longer. */
export function formatGrpcTimeout(timeoutMs: number): string {
  const leftMs = Math.max(0, timeoutMs);
  if (leftMs < 1) return `${Math.floor(leftMs * 1_000)}u`;
  if (leftMs <= MAX_NUMBER) return `${Math.floor(leftMs)}m`;
  return `${Math.min(MAX_NUMBER, Math.floor(leftMs / 1_000))}S`;
}
