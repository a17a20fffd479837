/** What must be stopped at the end, in the reverse order of its start. Running it twice does nothing more. */
export class Closing {
  private readonly tasks: (() => Promise<unknown>)[] = [];
  private running: Promise<void> | undefined;

  add(task: () => Promise<unknown>): void {
    this.tasks.push(task);
  }

  run(): Promise<void> {
    this.running ??= this.runAll();
    return this.running;
  }

  private async runAll(): Promise<void> {
    for (let task = this.tasks.pop(); task !== undefined; task = this.tasks.pop()) {
      // One part that cannot be stopped must not keep the others running.
      await task().catch(() => undefined);
    }
  }
}
