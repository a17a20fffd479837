import type { AgentIdentity } from '@bulwark/fleet';
import type { ForwardRequest, ForwardResponse, PeerServiceClient, Report } from '@bulwark/protocol';
import type { Logger } from '@bulwark/telemetry';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { FleetLink } from './fleet-link.js';
import { identityMessage } from './report-messages.js';

export interface ForwardLinkOptions {
  readonly replica: string;
  readonly client: PeerServiceClient;
  readonly logger: Logger;
  receive(response: ForwardResponse): void;
  ended(): void;
}

const MAX_WAITING = 20_000;

/**
 * A stream to the replica that decides. While it is blocked the newest report of each agent waits: reports are
 * cumulative per key, so merging keeps the newest of each key.
 */
export class ForwardLink implements FleetLink {
  private readonly call: ClientDuplexStream<ForwardRequest, ForwardResponse>;
  private readonly waiting = new Map<string, { agent: AgentIdentity; message: Report }>();
  private blocked = false;
  private over = false;

  constructor(private readonly options: ForwardLinkOptions) {
    this.call = options.client.forward();
    this.call.on('data', (response: ForwardResponse) => options.receive(response));
    this.call.on('drain', () => this.drained());
    this.call.on('error', () => undefined);
    this.call.on('status', ({ code, details }) => {
      if (this.over) return;
      this.over = true;
      options.logger.info({ code, details }, 'the stream to the deciding replica ended');
      options.ended();
    });
  }

  agentUp(agent: AgentIdentity): void {
    this.write({ $case: 'agentUp', value: { agent: identityMessage(agent) } });
  }

  agentDown(agent: AgentIdentity): void {
    this.waiting.delete(agent.id);
    this.write({ $case: 'agentDown', value: { agent: identityMessage(agent) } });
  }

  report(agent: AgentIdentity, _report: unknown, message: Report): void {
    if (!this.blocked) return this.send(agent, message);
    const former = this.waiting.get(agent.id);
    if (former === undefined && this.waiting.size >= MAX_WAITING) return;
    this.waiting.set(agent.id, {
      agent,
      message: former === undefined ? message : merged(former.message, message),
    });
  }

  close(): void {
    if (this.over) return;
    this.over = true;
    this.call.end();
    this.call.cancel();
  }

  private drained(): void {
    this.blocked = false;
    for (const [id, { agent, message }] of this.waiting) {
      if (this.blocked) return;
      this.waiting.delete(id);
      this.send(agent, message);
    }
  }

  private send(agent: AgentIdentity, report: Report): void {
    this.write({ $case: 'report', value: { agent: identityMessage(agent), report } });
  }

  private write(message: NonNullable<ForwardRequest['message']>): void {
    if (this.over) return;
    if (!this.call.write({ replica: this.options.replica, message })) this.blocked = true;
  }
}

/** The later counters of each key, over the span of both. */
function merged(former: Report, later: Report): Report {
  if (former.incarnation !== later.incarnation) return later;
  const id = ({ key, rule }: Report['keys'][number]): string =>
    `${key?.namespace}/${key?.policy}/${key?.key}#${rule}`;
  const keys = new Map([...former.keys, ...later.keys].map((key) => [id(key), key]));
  return {
    ...later,
    pollId: later.pollId || former.pollId,
    coversMs: former.coversMs + later.coversMs,
    keys: [...keys.values()],
  };
}
