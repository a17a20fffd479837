/** One claim of the tour, with what was measured and what was asked for. */
export interface Finding {
  readonly name: string;
  readonly value: string;
  readonly reach: string;
  readonly ok: boolean;
}

/** Lines for people; the findings decide the exit code. */
export class Report {
  private readonly findings: Finding[] = [];
  private readonly startedMs: number;

  constructor(
    private readonly write: (line: string) => void,
    private readonly nowMs: () => number,
  ) {
    this.startedMs = nowMs();
  }

  /** What happens now, with the seconds since the start. */
  say(line: string): void {
    const seconds = ((this.nowMs() - this.startedMs) / 1_000).toFixed(1).padStart(6);
    this.write(`${seconds} s  ${line}`);
  }

  heading(title: string): void {
    this.write('');
    this.write(`== ${title}`);
  }

  find(finding: Finding): void {
    this.findings.push(finding);
    const mark = finding.ok ? 'ok  ' : 'MISS';
    this.write(
      `          ${mark}  ${finding.name.padEnd(44)} ${finding.value.padStart(12)}   (${finding.reach})`,
    );
  }

  /** Names of what did not hold. */
  missed(): string[] {
    return this.findings.filter((one) => !one.ok).map((one) => one.name);
  }

  count(): number {
    return this.findings.length;
  }
}
