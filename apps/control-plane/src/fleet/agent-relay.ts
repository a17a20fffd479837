import type { Report } from '@bulwark/protocol';
import type { AgentListener } from '../distribution/distribution.js';
import type { AgentRegistry } from '../distribution/agent-registry.js';
import type { AgentSession } from '../distribution/agent-session.js';
import type { FleetLink } from './fleet-link.js';
import { checkReport } from './report-messages.js';
import type { VerdictBoard } from './verdict-board.js';
import type { VerdictFanout } from './verdict-fanout.js';

export interface AgentRelayOptions {
  readonly registry: AgentRegistry;
  readonly board: VerdictBoard;
  fanout(): VerdictFanout;
  /** For metrics: "taken", "refused" or "nobody-decides". */
  counted(result: string, count: number): void;
}

/** An agent that reconnects within this was never away; a holder of a permit is given up at once. */
const GRACE_MS = 2_000;

/** Brings what this replica's agents do and say to whoever decides. */
export class AgentRelay implements AgentListener {
  private link: FleetLink | undefined;
  private readonly leaving = new Map<string, NodeJS.Timeout>();

  constructor(private readonly options: AgentRelayOptions) {}

  /** From now on this is the way; everyone who is here is told again. */
  use(link: FleetLink | undefined): void {
    this.link = link;
    if (link === undefined) return;
    for (const session of this.options.registry.sessions()) link.agentUp(session.identity);
  }

  up(session: AgentSession): void {
    clearTimeout(this.leaving.get(session.id));
    this.leaving.delete(session.id);
    this.options.fanout().greet(session, performance.now());
    session.flush();
    this.link?.agentUp(session.identity);
  }

  down(session: AgentSession): void {
    if (this.options.board.holdsPermit(session.id, performance.now())) return this.gone(session);
    clearTimeout(this.leaving.get(session.id));
    this.leaving.set(
      session.id,
      setTimeout(() => this.gone(session), GRACE_MS),
    );
  }

  report(session: AgentSession, message: Report): void {
    if (!session.takesReport(performance.now())) return this.options.counted('too-many', 1);
    const checked = checkReport(message, session.identity);
    if (checked === undefined) return this.options.counted('refused', 1);
    if (checked.refused > 0) this.options.counted('refused', checked.refused);
    this.options.counted(this.link === undefined ? 'nobody-decides' : 'taken', 1);
    this.link?.report(session.identity, checked.report, message);
  }

  stop(): void {
    for (const timer of this.leaving.values()) clearTimeout(timer);
    this.leaving.clear();
    this.link = undefined;
  }

  private gone(session: AgentSession): void {
    this.leaving.delete(session.id);
    this.link?.agentDown(session.identity);
  }
}
