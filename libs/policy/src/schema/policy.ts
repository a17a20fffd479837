/** The whole `ResiliencePolicy`: the one source of its TypeScript type, its validation and its documentation. */
import type { Static } from 'typebox';
import { circuitBreaker } from './breaker.js';
import {
  constant,
  duration,
  integer,
  list,
  object,
  oneOf,
  percent,
  text,
  textMap,
  type JsonSchema,
} from './builders.js';
import { bulkhead, operation, retry, timeout } from './calls.js';
import { dnsLabel, labelKey, labelValue, metadata, status } from './metadata.js';

export const API_VERSION = 'bulwark.dev/v1';
export const POLICY_KIND = 'ResiliencePolicy';

const SERVICE = '^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?(?:\\.[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)*$';

const target = object('The dependency that is guarded.', {
  required: {
    service: text('Its name, as callers know it: a DNS name.', {
      min: 1,
      max: 253,
      pattern: SERVICE,
      form: 'a DNS name: labels of lower-case letters, digits and "-", joined by "."',
    }),
  },
  optional: {
    operations: list('Only these. Absent = all.', operation('One operation, compared as it stands.'), {
      min: 1,
      max: 64,
    }),
  },
});

const callers = object('Whose calls are guarded. Absent = those of every agent of the namespace.', {
  required: {
    matchLabels: textMap('Labels an agent must all have.', {
      keys: labelKey,
      values: labelValue,
      min: 1,
      max: 16,
    }),
  },
});

const fallback = object(
  'One way to answer without the dependency: exactly one of lastGood, simplified, static.',
  {
    minProperties: 1,
    maxProperties: 1,
    optional: {
      lastGood: object('The newest good answer to the same request.', {
        required: { maxAge: duration('Older ones are not used.', '1ms', '168h') },
        optional: {
          refreshJitter: percent(
            'Part of maxAge over which refreshes are spread, always before its end. Absent = 10%.',
            { min: 0, max: 100 },
          ),
          varyBy: list(
            'What else tells requests apart, beside method, full URL and authorisation: "header:NAME".',
            text('header:NAME', {
              max: 128,
              pattern: "^header:[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
              form: 'header:NAME',
            }),
            { max: 8 },
          ),
        },
      }),
      simplified: object('A cheaper operation of the same service.', {
        required: { operation: operation('Called instead.') },
        optional: {
          whenQueued: integer(
            'Also used as soon as this many calls wait in the bulkhead, before anything fails. Absent = only after a failure. From 1 to 100000.',
            1,
            100_000,
          ),
        },
      }),
      static: object('A fixed answer.', {
        required: { body: text('Sent as it stands; may be empty.', { max: 65_536 }) },
        optional: {
          status: integer('HTTP status. Absent = 200. From 200 to 599.', 200, 599),
          contentType: text('Absent = application/json when the body is JSON, else text/plain.', {
            min: 3,
            max: 128,
            pattern: '^[!-~]+/[ -~]+$',
            form: 'a media type such as application/json',
          }),
        },
      }),
    },
  },
);

const spec = object('The guard.', {
  required: { target },
  optional: {
    callers,
    contract: oneOf(
      'optional: the caller can do without it. required: it cannot (authorisation, payment), and any fallback is refused. Absent = optional.',
      ['optional', 'required'],
    ),
    mode: oneOf('Enforce, or Shadow: decides and reports, and changes nothing. Absent = Enforce.', [
      'Enforce',
      'Shadow',
    ]),
    timeout,
    retry,
    circuitBreaker,
    bulkhead,
    fallback: list(
      'Tried in order when a call has no fresh answer. Absent = failures reach the caller.',
      fallback,
      {
        max: 3,
        repeats: true,
      },
    ),
    rollout: object('How a change of this policy reaches the fleet.', {
      required: {
        strategy: dnsLabel(
          'The name of a RolloutStrategy, or immediate: to all at once. Absent = by the namespace, else the server.',
        ),
      },
    }),
  },
});

export const policySchema = object('How calls from some callers to one dependency are guarded.', {
  required: {
    apiVersion: constant(`Always ${API_VERSION}.`, API_VERSION),
    kind: constant(`Always ${POLICY_KIND}.`, POLICY_KIND),
    metadata,
    spec,
  },
  optional: { status },
});

/** What the schema accepts. Validated objects only ever come from `validatePolicy`. */
export type ResiliencePolicy = Static<typeof policySchema>;
export type PolicySpec = ResiliencePolicy['spec'];

/** The same schema as plain data, for OpenAPI and other readers. */
export const policyJsonSchema = policySchema as unknown as JsonSchema;
