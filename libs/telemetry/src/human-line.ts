const LEVELS = new Map([
  [20, 'DEBUG'],
  [30, 'INFO'],
  [40, 'WARN'],
  [50, 'ERROR'],
]);

/** One JSON log line as a person reads it: "12:04:31 WARN  store is away  attempt=3". */
export function humanLine(json: string): string {
  const { level, time, msg, err, ...rest } = JSON.parse(json) as Record<string, unknown>;
  const at = typeof time === 'string' ? time.slice(11, 19) : '--:--:--';
  const word = LEVELS.get(Number(level)) ?? 'INFO';
  const fields = Object.entries(rest)
    .filter(([key]) => key !== 'name')
    .map(([key, value]) => `${key}=${text(value)}`);
  const line = [`${at} ${word.padEnd(5)}`, text(msg), ...fields].join(' ');
  return `${line}${err === undefined ? '' : `\n${errorText(err)}`}\n`;
}

function text(value: unknown): string {
  return typeof value === 'string' ? printable(value) : JSON.stringify(value);
}

/** Values come from agents and their peers: none of them may begin a line of its own or steer the terminal. */
function printable(value: string): string {
  return value.replace(/\p{Cc}/gu, (one) =>
    JSON.stringify(one)
      .slice(1, -1)
      .replace(/^\p{Cc}$/u, '?'),
  );
}

function errorText(err: unknown): string {
  const stack = (err as { stack?: unknown } | null)?.stack;
  if (typeof stack !== 'string') return `  ${text(err)}`;
  return stack
    .split('\n')
    .map((line) => `  ${printable(line)}`)
    .join('\n');
}
