import type { AgentIdentity } from '@bulwark/fleet';
import type { ForwardRequest, ForwardResponse, Poll, Verdict, VerdictBroadcast } from '@bulwark/protocol';
import { status, type ServerDuplexStream } from '@grpc/grpc-js';
import { keyId } from './breaker-name.js';
import type { FleetLink } from './fleet-link.js';
import { checkReport, identityFromMessage } from './report-messages.js';

export type ForwardCall = ServerDuplexStream<ForwardRequest, ForwardResponse>;

export interface ForwardStreamOptions {
  readonly call: ForwardCall;
  readonly link: FleetLink;
  counted(result: string, count: number): void;
}

/** The deciding replica's end of another replica's stream. While it is blocked the newest word on each key waits. */
export class ForwardStream {
  /** Ids of the agents this replica speaks for. */
  readonly agents = new Map<string, AgentIdentity>();
  private readonly waiting = new Map<string, Verdict>();
  /** Not left to the verdict's end of life: what is forced lives for days. */
  private readonly removals = new Map<string, NonNullable<Verdict['key']>>();
  private blocked = false;

  constructor(private readonly options: ForwardStreamOptions) {
    options.call.on('data', (request: ForwardRequest) => this.receive(request));
    options.call.on('drain', () => this.drained());
  }

  broadcast(update: VerdictBroadcast): void {
    if (!this.blocked) return this.write({ $case: 'verdicts', value: update });
    for (const verdict of update.verdicts) {
      if (verdict.key === undefined) continue;
      this.waiting.set(keyId(verdict.key), verdict);
      this.removals.delete(keyId(verdict.key));
    }
    for (const key of update.removed) {
      this.waiting.delete(keyId(key));
      this.removals.set(keyId(key), key);
    }
  }

  poll(poll: Poll, agents: readonly string[]): void {
    const own = agents.filter((id) => this.agents.has(id));
    if (own.length > 0 && !this.blocked) this.write({ $case: 'poll', value: { poll, agents: own } });
  }

  close(details: string): void {
    this.options.call.emit('error', { code: status.UNAVAILABLE, details });
  }

  private receive({ message }: ForwardRequest): void {
    const identity = message?.value.agent;
    if (message === undefined || identity === undefined) return;
    const agent = identityFromMessage(identity);
    switch (message.$case) {
      case 'agentUp':
        return this.up(agent);
      case 'agentDown':
        this.agents.delete(agent.id);
        return this.options.link.agentDown(agent);
      case 'report':
        return this.report(agent, message.value.report);
    }
  }

  private up(agent: AgentIdentity): void {
    this.agents.set(agent.id, agent);
    this.options.link.agentUp(agent);
  }

  private report(agent: AgentIdentity, message: Parameters<typeof checkReport>[0] | undefined): void {
    const checked = message && checkReport(message, agent);
    if (message === undefined || checked === undefined) return this.options.counted('refused', 1);
    if (!this.agents.has(agent.id)) this.up(agent);
    this.options.counted('forwarded', 1);
    this.options.link.report(agent, checked.report, message);
  }

  private drained(): void {
    this.blocked = false;
    if (this.waiting.size + this.removals.size === 0) return;
    const value = { verdicts: [...this.waiting.values()], removed: [...this.removals.values()] };
    this.waiting.clear();
    this.removals.clear();
    this.write({ $case: 'verdicts', value });
  }

  private write(message: NonNullable<ForwardResponse['message']>): void {
    if (!this.options.call.write({ message })) this.blocked = true;
  }
}
