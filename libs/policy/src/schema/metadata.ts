/** `metadata` by Kubernetes' rules, so that its clients can read and write it. */
import { integer, list, object, text, textMap } from './builders.js';

/** Name, namespace: an RFC 1123 label. It stands in store keys, so no "/" may be in it. */
export const DNS_LABEL = '^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$';
const DNS_LABEL_FORM =
  'lower-case letters, digits and "-", beginning and ending with a letter or digit, at most 63';

const DNS_LABEL_PATTERN = new RegExp(DNS_LABEL);

/** Whether a text may be a name or a namespace. */
export function isDnsLabel(text: string): boolean {
  return DNS_LABEL_PATTERN.test(text);
}

/** A label's or annotation's key: [prefix/]name, the prefix a DNS name. */
export const QUALIFIED_NAME =
  '^(?:[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$';
const LABEL_VALUE = '^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$';
const NAME_FORM = 'letters, digits, "-", "_" and ".", at most 63, after an optional DNS name and "/"';

const key = (description: string) =>
  text(description, { max: 317, pattern: QUALIFIED_NAME, form: NAME_FORM });

export const labelKey = key('Key of a label.');
export const labelValue = text('Value of a label.', {
  max: 63,
  pattern: LABEL_VALUE,
  form: 'letters, digits, "-", "_" and ".", at most 63, or empty',
});

export const dnsLabel = (description: string) =>
  text(description, { min: 1, max: 63, pattern: DNS_LABEL, form: DNS_LABEL_FORM });

/** Kubernetes' own bound on all annotations of one object together, in bytes of keys and values. */
export const MAX_ANNOTATIONS_TOTAL = 262_144;

const timestamp = (description: string) =>
  text(`${description} RFC 3339; written by the server.`, { max: 40 });

/** Parts that Kubernetes defines and this server only keeps. */
const openMap = object('As Kubernetes defines it; written by the server.', { open: true });

export const metadata = object(
  'What names and describes the object. Names are RFC 1123 labels: they hold no "/".',
  {
    required: { name: dnsLabel('Unique within its namespace.') },
    optional: {
      namespace: dnsLabel('Absent = the namespace of the request, else "default".'),
      labels: textMap('For selectors.', { keys: labelKey, values: labelValue, max: 64 }),
      annotations: textMap(
        'For people and tools. bulwark.dev/owner and bulwark.dev/runbook are shown wherever the breaker is.',
        {
          keys: key('Key of an annotation.'),
          values: text('Any text.', { max: MAX_ANNOTATIONS_TOTAL }),
          max: 256,
        },
      ),
      generateName: text('Kept for Kubernetes clients.', { max: 63 }),
      uid: text('Written by the server.', { max: 64 }),
      resourceVersion: text("The object's revision in the store; on a write, what it must still be.", {
        max: 32,
      }),
      generation: integer('Counts changes of spec; written by the server.', 0, Number.MAX_SAFE_INTEGER),
      creationTimestamp: timestamp('When it was made.'),
      deletionTimestamp: timestamp('When it was asked to go.'),
      deletionGracePeriodSeconds: integer(
        'Kept for Kubernetes clients. Seconds.',
        0,
        Number.MAX_SAFE_INTEGER,
      ),
      finalizers: list('Names that hold a deletion back.', text('A name.', { max: 317 }), { max: 32 }),
      ownerReferences: list('Kept for Kubernetes clients.', openMap, { max: 32, repeats: true }),
      managedFields: list('Who set which field; written by the server.', openMap, {
        max: 256,
        repeats: true,
      }),
      selfLink: text('Kept for Kubernetes clients.', { max: 1_024 }),
    },
  },
);

export const status = object('What is so, written by the server; a write to it is ignored.', {
  open: true,
  optional: {
    observedGeneration: integer('The generation this status speaks of.', 0, Number.MAX_SAFE_INTEGER),
    agents: object('How many agents it concerns.', {
      open: true,
      optional: {
        matched: integer('Live agents this policy is for.', 0, Number.MAX_SAFE_INTEGER),
        running: integer(
          'Of those, the ones that have this generation in force.',
          0,
          Number.MAX_SAFE_INTEGER,
        ),
        refused: integer('Of those, the ones that refused it.', 0, Number.MAX_SAFE_INTEGER),
      },
    }),
    conditions: list(
      'Accepted, Distributed, Degraded, Shadowed.',
      object('One condition, as Kubernetes shapes it.', {
        open: true,
        required: {
          type: text('Its name.', { max: 316 }),
          status: text('True, False or Unknown.', { max: 16 }),
        },
        optional: {
          observedGeneration: integer('The generation it speaks of.', 0, Number.MAX_SAFE_INTEGER),
          lastTransitionTime: timestamp('When its status last changed.'),
          reason: text('One word for programs.', { max: 1_024 }),
          message: text('For people.', { max: 32_768 }),
        },
      }),
      { max: 32, repeats: true },
    ),
  },
});
