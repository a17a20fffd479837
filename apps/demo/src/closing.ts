/**
 * What must be stopped at the end, in the reverse order of its start. Running it twice does nothing more. What was just
 * starting when the end came is stopped as soon as it is added.
 */
export class Closing {
  private readonly tasks: (() => Promise<unknown>)[] = [];
  private running: Promise<void> | undefined;

  add(task: () => Promise<unknown>): void {
    this.tasks.push(task);
    if (this.running !== undefined) this.running = this.running.then(() => this.runAll());
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
