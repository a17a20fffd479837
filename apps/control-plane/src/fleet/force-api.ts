import { parseDuration, type ResiliencePolicy } from '@bulwark/policy';
import type { BreakerKey, Forced } from '@bulwark/fleet';
import type { FastifyReply } from 'fastify';
import { badRequest, invalid, notFound, type Cause } from '../errors/api-error.js';
import type { ApiRequest } from '../http/resource-api.js';
import { isMap, parseJson, type JsonMap } from '../objects/json-value.js';
import type { ApiObject } from '../objects/api-object.js';
import { breakerName, parseBreakerName } from './breaker-name.js';
import type { Fleet } from './fleet.js';

export interface ForceApiOptions {
  readonly fleet: Fleet;
  /** The policy as the store has it. */
  policy(namespace: string, name: string): Promise<ApiObject | undefined>;
  /** The breaker as it is now; undefined = no such one. */
  read(namespace: string, name: string): Promise<ApiObject | undefined>;
}

const MAX_FORCE_MS = 7 * 24 * 3_600_000;
const MAX_REASON = 1_024;

/** `PUT …/breakers/NAME/force` with {state: Open|Closed|None, for: "10m", reason}: a person overrules the fleet. */
export class ForceApi {
  constructor(private readonly options: ForceApiOptions) {}

  async force(request: ApiRequest, reply: FastifyReply): Promise<void> {
    const { namespace = '', name = '' } = request.params;
    const body = Buffer.isBuffer(request.body) ? parseJson(request.body) : undefined;
    if (!isMap(body)) throw badRequest('the body must be {"state": "Open", "for": "10m", "reason": "…"}');
    const forced = parseForce(body, name);
    const key = await this.key(namespace, name);
    await this.options.fleet.force(key, forced);
    const breaker = await this.options.read(namespace, name);
    if (breaker === undefined) throw notFound({ plural: 'breakers', name });
    await reply.send(breaker);
  }

  /** Of a breaker that is there, or of the whole target of a policy that nothing was counted for yet. */
  private async key(namespace: string, name: string): Promise<BreakerKey> {
    const breaker = await this.options.read(namespace, name);
    if (breaker !== undefined) {
      const { policy, key, scope } = breaker.spec as { policy: string; key: string; scope: string };
      if (scope === 'Instance') {
        throw badRequest(`every agent decides breaker "${name}" alone (scope Instance): it cannot be forced`);
      }
      return { namespace, policy, key };
    }
    const { policy } = parseBreakerName(name) ?? { policy: '' };
    const key = { namespace, policy, key: 'target' };
    if (breakerName(key) !== name || !hasFleetBreaker(await this.options.policy(namespace, policy)))
      throw notFound({ plural: 'breakers', name });
    return key;
  }
}

function hasFleetBreaker(policy: ApiObject | undefined): boolean {
  const breaker = (policy as ResiliencePolicy | undefined)?.spec.circuitBreaker;
  return breaker !== undefined && breaker.scope !== 'Instance';
}

function parseForce(body: JsonMap, name: string): Forced | undefined {
  const causes: Cause[] = [];
  const wrong = (field: string, message: string): void => {
    causes.push({ reason: 'FieldValueInvalid', field, message });
  };
  const { state, reason = '', by = 'unknown', for: span } = body;
  for (const field of Object.keys(body)) {
    if (!['state', 'for', 'reason', 'by'].includes(field))
      wrong(field, 'unknown field; known are state, for, reason, by');
  }
  if (state !== 'Open' && state !== 'Closed' && state !== 'None') {
    wrong('state', `${JSON.stringify(state) ?? 'absent'} is not one of Open, Closed, None`);
  }
  const ms = typeof span === 'string' ? parseDuration(span) : undefined;
  if (state !== 'None' && (ms === undefined || ms < 1_000 || ms > MAX_FORCE_MS)) {
    wrong('for', `${JSON.stringify(span) ?? 'absent'} is not a duration from 1s to 168h, such as "10m"`);
  }
  if (typeof reason !== 'string' || reason.length > MAX_REASON)
    wrong('reason', `must be text of at most ${MAX_REASON}`);
  if (typeof by !== 'string' || by.length > 253) wrong('by', 'must be text of at most 253 characters');
  if (causes.length > 0) throw invalid({ plural: 'breakers', kind: 'Breaker', name }, causes);
  if (state === 'None') return undefined;
  return {
    state: state === 'Open' ? 'open' : 'closed',
    remainingMs: ms ?? 0,
    by: by as string,
    reason: reason as string,
  };
}
