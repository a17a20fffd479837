import type { AgentIdentity, AgentReport } from '@bulwark/fleet';
import type { Report } from '@bulwark/protocol';

/** The way to whoever decides: in this process, or over a stream to another replica. */
export interface FleetLink {
  agentUp(agent: AgentIdentity): void;
  agentDown(agent: AgentIdentity): void;
  /** `report` has been checked; `message` is the same as it came. */
  report(agent: AgentIdentity, report: AgentReport, message: Report): void;
}
