import type { AgentIdentity, BreakerKey, StoredVerdict } from '@bulwark/fleet';
import type { VerdictUpdate } from '@bulwark/protocol';
import { keyId } from './breaker-name.js';
import type { DeciderAudience, DeciderHost } from './decider-host.js';
import type { FleetLink } from './fleet-link.js';
import { ForwardStream, type ForwardCall } from './forward-stream.js';
import type { VerdictBoard } from './verdict-board.js';
import type { VerdictFanout } from './verdict-fanout.js';
import { verdictMessage } from './verdict-messages.js';

export interface DeciderDeskOptions {
  readonly board: VerdictBoard;
  readonly fanout: VerdictFanout;
  createHost(audience: DeciderAudience): DeciderHost;
  /** To this replica's own agents and board. */
  deliver(update: VerdictUpdate): VerdictUpdate;
  counted(result: string, count: number): void;
  transition(from: string, to: string, reason: string): void;
}

/** Agents of a replica that died reconnect to another one within this; only then are they held for gone. */
const ORPHAN_MS = 3_000;

interface Push {
  readonly verdict: StoredVerdict;
  readonly ttlMs: number;
}

/**
 * Everything around one decider while this replica holds the claim: the ways agents' words come in (here, and streams of
 * other replicas), and the ways its own words go out.
 */
export class DeciderDesk {
  readonly host: DeciderHost;
  private readonly streams = new Set<ForwardStream>();
  /** Which way each agent's word came last: a stream, or "here". */
  private readonly sources = new Map<string, ForwardStream | 'here'>();
  private readonly orphans = new Set<NodeJS.Timeout>();
  private outbox: { verdicts: Map<string, Push>; removed: BreakerKey[] } | undefined;
  private closed = false;

  constructor(private readonly options: DeciderDeskOptions) {
    this.host = options.createHost(this.audience());
  }

  /** The way of this replica's own agents. */
  link(): FleetLink {
    return this.way(() => 'here');
  }

  /** Takes the stream of another replica. */
  accept(call: ForwardCall): void {
    const stream: ForwardStream = new ForwardStream({
      call,
      link: this.way(() => stream),
      counted: (result, count) => this.options.counted(result, count),
    });
    this.streams.add(stream);
    stream.broadcast({ verdicts: this.options.board.alive(performance.now(), () => true), removed: [] });
    const over = (): void => {
      if (this.streams.delete(stream)) this.orphan(stream);
    };
    for (const event of ['cancelled', 'close', 'error']) call.on(event, over);
    call.on('end', () => {
      over();
      call.end();
    });
  }

  /** Nothing is decided or said any more; other replicas come again, to whoever decides then. */
  close(why: string): void {
    this.closed = true;
    this.host.stop();
    for (const timer of this.orphans) clearTimeout(timer);
    for (const stream of [...this.streams]) {
      this.streams.delete(stream);
      stream.close(why);
    }
  }

  private audience(): DeciderAudience {
    return {
      push: (verdict, ttlMs) => {
        this.countTransition(verdict);
        this.post().verdicts.set(keyId(verdict.key), { verdict, ttlMs });
      },
      remove: (key) => {
        this.post().verdicts.delete(keyId(key));
        this.post().removed.push(key);
      },
      poll: ({ pollId, key, agents }) => {
        const poll = { pollId, keys: [{ ...key }] };
        const here = agents.filter((id) => this.sources.get(id) === 'here');
        if (here.length > 0) this.options.fanout.poll(poll, here);
        for (const stream of this.streams) stream.poll(poll, agents);
      },
    };
  }

  private countTransition({ key, version, transitions }: StoredVerdict): void {
    const last = transitions.at(-1);
    const known = this.options.board.get(key)?.version;
    if (last === undefined || last.epoch !== version.epoch || known?.epoch === version.epoch) return;
    this.options.transition(last.from, last.to, last.reason);
  }

  /** What is pushed in one instant goes out together. */
  private post(): NonNullable<DeciderDesk['outbox']> {
    if (this.outbox !== undefined) return this.outbox;
    const outbox = (this.outbox = { verdicts: new Map<string, Push>(), removed: [] });
    queueMicrotask(() => {
      this.outbox = undefined;
      if (this.closed) return;
      const verdicts = [...outbox.verdicts.values()].map(({ verdict, ttlMs }) =>
        verdictMessage(verdict, ttlMs),
      );
      const said = this.options.deliver({ verdicts, removed: outbox.removed });
      for (const stream of this.streams) stream.broadcast(said);
    });
    return outbox;
  }

  /**
   * An agent belongs to the way it came last; what an older way says of it is ignored. A replica that has not noticed
   * yet that an agent moved may claim it once more, and then give it up: whoever goes on to bring its reports has it.
   */
  private way(source: () => ForwardStream | 'here'): FleetLink {
    const agentUp = (agent: AgentIdentity): void => {
      this.sources.set(agent.id, source());
      this.host.agentUp(agent);
    };
    return {
      agentUp,
      agentDown: (agent) => this.gone(agent, source()),
      report: (agent, report) => {
        if (!this.sources.has(agent.id)) agentUp(agent);
        if (this.sources.get(agent.id) === source()) this.host.report(agent, report);
      },
    };
  }

  private orphan(stream: ForwardStream): void {
    const timer = setTimeout(() => {
      this.orphans.delete(timer);
      for (const agent of stream.agents.values()) this.gone(agent, stream);
    }, ORPHAN_MS);
    this.orphans.add(timer);
  }

  private gone(agent: AgentIdentity, source: ForwardStream | 'here'): void {
    if (this.sources.get(agent.id) !== source) return;
    this.sources.delete(agent.id);
    this.host.agentDown(agent);
  }
}
