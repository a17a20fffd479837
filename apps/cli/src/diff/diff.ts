import { resourceOfKind, objectPath } from '@bulwark/views';
import { isMap, sortedKeys } from '../apply/merge.js';
import type { LoadedPolicy } from '../apply/load.js';
import { LAST_APPLIED } from '../apply/plan.js';
import { LivePolicies } from '../apply/live-policies.js';
import { write } from '../apply/write.js';
import type { ApiObject } from '../client/api-client.js';
import { EXIT } from '../command-error.js';
import type { Context } from '../context.js';
import type { Paint, Tint } from '../output/colour.js';
import { documentText } from '../output/documents.js';
import { unifiedDiff } from './unified.js';

/** `bulwark diff`: 0 = applying would change nothing, 1 = it would. Errors are thrown (exit code 2, set by the caller). */
export async function diff(policies: readonly LoadedPolicy[], context: Context): Promise<number> {
  const server = new LivePolicies(context.api);
  await server.load(policies);
  let different = false;
  for (const policy of policies) {
    const live = await server.of(policy);
    const { object } = await write(policy, context, { dryRun: true, remember: false, live: server });
    const text = unifiedDiff(await comparable(live), await comparable(object));
    if (text === '') continue;
    different = true;
    context.io.out(coloured(`${heading(policy, live)}${text}`, context.paint));
  }
  return different ? EXIT.failed : EXIT.ok;
}

function heading({ namespace, name, place }: LoadedPolicy, live: ApiObject | undefined): string {
  const resource = resourceOfKind('ResiliencePolicy');
  const path = resource === undefined ? name : objectPath(resource, name);
  const before = live === undefined ? '/dev/null' : `live/${namespace}/${path}`;
  return `--- ${before}\n+++ ${place}/${namespace}/${path}\n`;
}

/** What people decide about, in one spelling: without what the server writes. */
async function comparable(object: ApiObject | undefined): Promise<string> {
  if (object === undefined) return '';
  const { name, namespace, labels, annotations = {} } = object.metadata;
  const own = Object.fromEntries(Object.entries(annotations).filter(([key]) => key !== LAST_APPLIED));
  const metadata = {
    name,
    namespace,
    ...(isMap(labels) && Object.keys(labels).length > 0 ? { labels } : {}),
    ...(Object.keys(own).length > 0 ? { annotations: own } : {}),
  };
  const { apiVersion, kind, spec } = object;
  return documentText({ apiVersion, kind, metadata: sortedKeys(metadata), spec: sortedKeys(spec) }, 'yaml');
}

const TINTS: Readonly<Record<string, Tint>> = { '-': 'removed', '+': 'added', '@': 'dim' };

function coloured(text: string, paint: Paint): string {
  return text
    .split('\n')
    .map((line) => paint(line, line === '' ? undefined : TINTS[line.charAt(0)]))
    .join('\n');
}
