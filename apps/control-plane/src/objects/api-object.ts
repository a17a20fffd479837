/** Any object of the API, as it goes over the wire. */
export interface ApiObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Metadata;
  readonly spec?: unknown;
  readonly status?: unknown;
}

export interface Metadata {
  readonly name: string;
  readonly namespace: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  /** RFC 3339, whole seconds. */
  readonly creationTimestamp?: string;
  /** Set when it is to go as soon as its finalizers are gone. */
  readonly deletionTimestamp?: string;
  readonly finalizers?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export const API_GROUP = 'bulwark.dev';
export const API_VERSION = 'bulwark.dev/v1';

/** Namespaces and names hold no "/", so this is unambiguous. */
export function objectKey(object: { readonly metadata: Metadata }): string {
  return `${object.metadata.namespace}/${object.metadata.name}`;
}

export function withResourceVersion<T extends ApiObject>(object: T, revision: number): T {
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } };
}
