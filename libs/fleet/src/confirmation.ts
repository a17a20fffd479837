import { Asking } from './asking.js';
import type { Change, Scene } from './changes.js';
import { LookPace } from './look-pace.js';

/** A look that has something to decide, and when to look again if nobody reports before. */
export interface Look {
  readonly change: Change | undefined;
  readonly againMs: number;
}

export interface Judging {
  readonly scene: Scene;
  /** Not earlier than this. */
  readonly fromMs: number;
  /** What the counts known now call for. */
  readonly judge: (scene: Scene) => Change | undefined;
  /** Asks these agents for their counters; answers the poll's number. */
  readonly ask: (agents: readonly string[]) => number;
}

/**
 * Looks at the rules when there is news, not too often, and takes no decision that is based on what was heard so far
 * before those who may know better were asked. See asking.ts for why.
 */
export class Confirmation {
  private readonly asking = new Asking();
  private readonly pace = new LookPace();
  private news = false;
  private lookedMs = -Infinity;

  /** `closePoll`: no answer to this poll is awaited any more. */
  constructor(private readonly closePoll: (pollId: number) => void) {}

  get isAsking(): boolean {
    return this.asking.pollId !== undefined;
  }

  noteNews(): void {
    this.news = true;
  }

  /** Something became due at this time, and was not looked at since. */
  noteDue(atMs: number): void {
    if (this.lookedMs < atMs) this.news = true;
  }

  heard(agent: string): void {
    this.asking.heard(agent);
  }

  look(judging: Judging): Look {
    const { asking } = this;
    const { scene, judge } = judging;
    const { nowMs } = scene;
    if (this.isAsking) return this.lookAfterAsking(scene, judge);
    if (!this.news) return { change: undefined, againMs: Infinity };
    const earliestMs = Math.max(this.pace.allowedMs(nowMs), judging.fromMs, asking.allowedMs);
    if (nowMs < earliestMs) return { change: undefined, againMs: earliestMs };
    this.noteLook(nowMs);
    const change = judge(scene);
    if (change === undefined) return { change, againMs: Infinity };
    const agents = asking.silent(scene.series.all, nowMs);
    if (agents.length === 0) return { change, againMs: Infinity };
    asking.ask(judging.ask(agents), agents, nowMs);
    return { change: undefined, againMs: asking.deadlineMs };
  }

  /** Whatever was asked is of no interest any more. */
  end(): void {
    if (this.asking.pollId === undefined) return;
    this.closePoll(this.asking.pollId);
    this.asking.confirmed();
  }

  private lookAfterAsking(scene: Scene, judge: Judging['judge']): Look {
    const { asking } = this;
    if (!asking.isOver(scene.nowMs)) return { change: undefined, againMs: asking.deadlineMs };
    this.end();
    this.noteLook(scene.nowMs);
    const change = judge(scene);
    if (change === undefined) asking.refuted(scene.nowMs);
    return { change, againMs: Infinity };
  }

  private noteLook(nowMs: number): void {
    this.news = false;
    this.lookedMs = nowMs;
    this.pace.looked(nowMs);
  }
}
