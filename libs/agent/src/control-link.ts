import type { CompiledPolicy } from '@bulwark/policy';
import {
  agentId,
  PROTOCOL_LEVEL,
  type Ack,
  type ResourceStatus,
  type Update,
  type VerdictUpdate,
} from '@bulwark/protocol';
import type { GateChange, Host } from '@bulwark/resilience';
import { compileSlowly } from './compile-slowly.js';
import { compileResource } from './compile-resource.js';
import type { CompleteOptions } from './connect-options.js';
import { ControlStream, type StreamStatus } from './control-stream.js';
import type { PolicySet } from './policy-set.js';
import type { Refusal } from './refusal.js';
import { MessageAge } from './message-age.js';
import { Reporter } from './reporter.js';
import { applyUpdate, type Snapshot } from './snapshot.js';
import type { SnapshotKeeper } from './snapshot-keeper.js';
import { breakerKeyId, toFleetVerdict, type VerdictInbox } from './verdict-inbox.js';
import { VERSION } from './version.js';

/** What the stream brought, as far as a start waits for it. */
export type LinkNews =
  | { readonly kind: 'welcome' | 'policies' | 'unreachable' }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

export interface ControlLinkOptions {
  readonly options: CompleteOptions;
  readonly host: Host;
  readonly incarnation: string;
  readonly policies: PolicySet;
  readonly inbox: VerdictInbox;
  readonly keeper: SnapshotKeeper | undefined;
  readonly initial: Snapshot<CompiledPolicy>;
}

/** A rejected call after so long a silence of its key is new demand. */
const DEMAND_SILENCE_MS = 1_000;
/** Keys whose last rejection is remembered; beyond it all are forgotten, which costs a few early reports. */
const MAX_DEMAND_KEYS = 20_000;

/**
 * Joins the policies in force with the control plane: takes snapshots and verdicts, sends counts. Calls know nothing of
 * it; while it is cut, everything it brought stays in force.
 */
export class ControlLink {
  readonly #parts: ControlLinkOptions;
  readonly #reporter: Reporter;
  readonly #stream: ControlStream;
  readonly #rejectedAtMs = new Map<string, number>();
  readonly #listeners = new Set<(news: LinkNews) => void>();
  #snapshot: Snapshot<CompiledPolicy>;
  /** Updates are worked off one after the other. */
  #updates: Promise<void> = Promise.resolve();
  #lastContactMs: number | undefined;
  #refusals: Readonly<Record<string, string>> = {};
  #hinted = false;
  #connected = false;

  readonly #age = new MessageAge();

  constructor(parts: ControlLinkOptions) {
    this.#parts = parts;
    this.#snapshot = parts.initial;
    const { host, options, policies, incarnation } = parts;
    this.#reporter = new Reporter({
      incarnation,
      host,
      read: (id) => policies.read(id),
      ids: () => policies.ids(),
      send: (report) => this.#stream.sendReport(report),
    });
    this.#stream = new ControlStream({
      addresses: options.addresses,
      logger: options.logger,
      random: host.random,
      guarded: () => policies.applicable > 0,
      handler: {
        hello: () => this.#hello(),
        welcome: ({ slot, serviceAgents }) => {
          this.#contact();
          this.#connected = true;
          this.#age.reset();
          policies.setSlot(slot);
          policies.setServiceAgents(serviceAgents);
          this.#reporter.connected();
          this.#tell({ kind: 'welcome' });
        },
        update: (update, ack) => {
          this.#contact();
          this.#updates = this.#updates
            .then(() => this.#update(update, ack))
            .catch((error: unknown) => this.#defect(update, ack, error));
        },
        verdicts: (verdicts) => this.#verdicts(verdicts),
        poll: (poll) => {
          this.#contact();
          this.#reporter.poll(poll, breakerKeyId);
        },
        writable: () => this.#reporter.writable(),
        lost: () => {
          // A standing connection is heard by its keep-alive, whether or not there are messages.
          if (this.#connected) this.#contact();
          this.#connected = false;
          this.#reporter.disconnected();
          this.#tell({ kind: 'unreachable' });
        },
        refused: (refusal) => this.#tell({ kind: 'refused', refusal }),
      },
    });
  }

  get snapshot(): Snapshot<CompiledPolicy> {
    return this.#snapshot;
  }

  /** Monotonic time at which the control plane was last heard: now while connected; undefined = never in this run. */
  get lastContactMs(): number | undefined {
    return this.#connected ? this.#parts.host.nowMs() : this.#lastContactMs;
  }

  /** Why a policy's newest generation is not in force, by "namespace/name". */
  get refusals(): Readonly<Record<string, string>> {
    return this.#refusals;
  }

  start(): void {
    this.#stream.start();
  }

  status(): StreamStatus {
    return this.#stream.status();
  }

  /** The next news of a wanted kind, or undefined after `waitMs`. */
  news(wanted: (news: LinkNews) => boolean, waitMs: number): Promise<LinkNews | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => done(undefined), waitMs);
      const listener = (news: LinkNews): void => {
        if (wanted(news)) done(news);
      };
      const done = (news: LinkNews | undefined): void => {
        clearTimeout(timer);
        this.#listeners.delete(listener);
        resolve(news);
      };
      this.#listeners.add(listener);
    });
  }

  /** A breaker key counted something. Called for every attempt. */
  changed(id: string, change: GateChange): void {
    const urgent = change === 'failure' || change === 'probe' || change === 'local';
    if (urgent || (change === 'rejected' && this.#isNewDemand(id))) this.#reporter.urgent(id);
    else this.#reporter.changed(id);
  }

  /** Sends the last counts and ends the stream. */
  async close(): Promise<void> {
    this.#reporter.flush();
    this.#reporter.stop();
    await this.#stream.close();
  }

  #hello() {
    const { options, incarnation } = this.#parts;
    const { namespace, service, instance, labels } = options;
    return {
      namespace,
      service,
      instance,
      incarnation,
      labels: { ...labels },
      version: VERSION,
      protocol: PROTOCOL_LEVEL,
      held: this.#snapshot.version,
      // What a bootstrap file brought is no generation of the control plane's.
      resources: [...this.#snapshot.resources.values()]
        .filter((resource) => resource.generation > 0)
        .map(({ name, uid, generation }) => ({ name, uid, generation })),
    };
  }

  /** In force first, then on disk, then acknowledged: what is called distributed must be so. */
  async #update(update: Update, ack: (ack: Ack) => void): Promise<void> {
    const { policies, keeper, options, host } = this.#parts;
    const compile = await compileSlowly(update.resources, compileResource, host.nowMs);
    const formerly = policies.applicable;
    const applied = applyUpdate(this.#snapshot, update, compile);
    this.#snapshot = applied.snapshot;
    if (applied.stale) {
      options.logger.warn({ version: update.version }, 'refused policies older than those in force');
    } else {
      policies.swap([...applied.snapshot.resources.values()].map((resource) => resource.compiled));
      policies.setServiceAgents(update.serviceAgents);
      options.logger.info(
        { ...applied.snapshot.version, policies: applied.snapshot.resources.size },
        'policies are in force',
      );
      this.#noteRefusals(applied.statuses);
      if (formerly > 0 && policies.applicable === 0) this.#emptied(formerly);
      else this.#hint();
      await keeper?.save(applied.snapshot);
    }
    ack({ nonce: update.nonce, version: applied.snapshot.version, resources: [...applied.statuses] });
    this.#tell({ kind: 'policies' });
  }

  /** A defect of this agent: said to the control plane like any refusal, so that a rollout stops on it. */
  #defect(update: Update, ack: (ack: Ack) => void, error: unknown): void {
    const reason = `defect of agent ${VERSION}: ${error instanceof Error ? error.message : String(error)}`;
    this.#parts.options.logger.error({ reason }, 'an update could not be put in force');
    ack({
      nonce: update.nonce,
      version: this.#snapshot.version,
      resources: update.resources.map(({ name, generation }) => ({
        name,
        generation,
        accepted: false,
        reason,
      })),
    });
  }

  #noteRefusals(statuses: readonly ResourceStatus[]): void {
    const refusals = { ...this.#refusals };
    for (const { name, generation, accepted, reason } of statuses) {
      const policy = `${name?.namespace}/${name?.name}`;
      if (accepted) {
        delete refusals[policy];
        continue;
      }
      refusals[policy] = `generation ${generation}: ${reason}`;
      this.#parts.options.logger.error({ policy, generation, reason }, 'refused a policy');
    }
    this.#refusals = refusals;
  }

  /** Said each time: an emptied store, or a wrong one, looks just like this. */
  #emptied(formerly: number): void {
    this.#hinted = true;
    const { namespace, service, labels, logger } = this.#parts.options;
    const went = formerly === 1 ? 'the only policy' : `all ${formerly} policies`;
    logger.warn(
      { namespace, service, labels, version: this.#snapshot.version, taken: formerly },
      `the control plane took away ${went} of this agent: its calls pass unguarded`,
    );
  }

  #hint(): void {
    if (this.#hinted || this.#parts.policies.applicable > 0) return;
    this.#hinted = true;
    const { namespace, service, labels, logger } = this.#parts.options;
    logger.warn(
      { namespace, service, labels },
      'no policy is for this agent: its calls pass unguarded. Check its namespace, service and labels',
    );
  }

  #verdicts({ verdicts, removed }: VerdictUpdate): void {
    this.#contact();
    const { host, inbox, policies, options, incarnation } = this.#parts;
    const nowMs = host.nowMs();
    const holder = { id: agentId(options), incarnation };
    for (const message of verdicts) {
      const verdict = toFleetVerdict(message, holder, this.#age.lateMs(message.senderMs, nowMs));
      if (message.key === undefined || verdict === undefined) continue;
      if (inbox.put(breakerKeyId(message.key), verdict, nowMs)) policies.applyVerdict(message.key, verdict);
    }
    for (const key of removed) {
      inbox.remove(breakerKeyId(key));
      policies.dropVerdict(key);
    }
  }

  /** Somebody wants to call again: the fleet may give its probe to this agent. */
  #isNewDemand(id: string): boolean {
    const nowMs = this.#parts.host.nowMs();
    const lastMs = this.#rejectedAtMs.get(id) ?? -Infinity;
    if (this.#rejectedAtMs.size >= MAX_DEMAND_KEYS) this.#rejectedAtMs.clear();
    this.#rejectedAtMs.set(id, nowMs);
    return nowMs - lastMs > DEMAND_SILENCE_MS;
  }

  #contact(): void {
    this.#lastContactMs = this.#parts.host.nowMs();
  }

  #tell(news: LinkNews): void {
    for (const listener of this.#listeners) listener(news);
  }
}
