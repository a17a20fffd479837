import { randomUUID } from 'node:crypto';
import { alreadyExists, badRequest, notFound } from '../errors/api-error.js';
import { withResourceVersion, type ApiObject } from './api-object.js';
import { validated, type FieldValidation } from './field-validation.js';
import { isMap, type JsonMap } from './json-value.js';
import {
  addressed,
  expectSame,
  requireName,
  stampChange,
  stampNew,
  type Expectation,
} from './metadata-rules.js';
import type { ObjectStore } from './object-store.js';
import type { Patch } from './patch.js';

export interface WriteOptions {
  readonly dryRun: boolean;
  readonly fieldValidation: FieldValidation;
}

export interface Written {
  readonly object: ApiObject;
  /** For `Warning` headers. */
  readonly warnings: readonly string[];
  /** Store revision that holds it; 0 for a dry run. */
  readonly revision: number;
}

export interface Place {
  readonly namespace: string;
  readonly name: string;
}

/** Create, replace, patch and delete with Kubernetes' rules for metadata, generations and conflicts. */
export class ObjectWrites {
  constructor(
    private readonly objects: ObjectStore,
    private readonly now: () => Date,
  ) {}

  async create(namespace: string, body: unknown, options: WriteOptions): Promise<Written> {
    const { kind } = this.objects;
    const given = addressed(body, kind, { namespace, name: undefined });
    const name = requireName(given, kind);
    if (metadataOf(given)['resourceVersion']) {
      throw badRequest('resourceVersion should not be set on objects to be created');
    }
    const { object, warnings } = validated(given, { kind, name, mode: options.fieldValidation });
    const creationTimestamp = this.now()
      .toISOString()
      .replace(/\.\d+Z$/, 'Z');
    const stamped = stampNew(object, { uid: randomUUID(), creationTimestamp });
    const advice = [...warnings, ...kind.advice(stamped)];
    if (!options.dryRun) {
      const created = await this.objects.create(stamped);
      return { object: created, warnings: advice, revision: Number(created.metadata.resourceVersion) };
    }
    if (await this.objects.read(namespace, name)) {
      throw alreadyExists({ plural: kind.plural, kind: kind.kind, name });
    }
    return { object: stamped, warnings: advice, revision: 0 };
  }

  async replace(place: Place, body: unknown, options: WriteOptions): Promise<Written> {
    const given = addressed(body, this.objects.kind, place);
    return this.write(place, options, () => given);
  }

  async patch(place: Place, patch: Patch, options: WriteOptions): Promise<Written> {
    return this.write(place, options, (existing) => addressed(patch(existing), this.objects.kind, place));
  }

  /** @returns the object that was there; with finalizers it stays, marked, until they are gone */
  async delete(
    place: Place,
    expected: Expectation,
    dryRun: boolean,
  ): Promise<Written & { deleted: boolean }> {
    const { kind } = this.objects;
    const change = (existing: ApiObject): ApiObject | undefined => {
      expectSame(expected, existing, kind);
      if (existing.metadata.finalizers === undefined) return undefined;
      return { ...existing, metadata: { deletionTimestamp: this.now().toISOString(), ...existing.metadata } };
    };
    if (dryRun) {
      const existing = await this.existing(place);
      return {
        object: change(existing) ?? existing,
        warnings: [],
        revision: 0,
        deleted: change(existing) === undefined,
      };
    }
    return { ...(await this.objects.change(place.namespace, place.name, change)), warnings: [] };
  }

  private async write(
    place: Place,
    options: WriteOptions,
    make: (existing: ApiObject) => JsonMap,
  ): Promise<Written> {
    const { kind } = this.objects;
    let warnings: readonly string[] = [];
    const change = (existing: ApiObject): ApiObject | undefined => {
      const given = make(existing);
      expectSame(metadataOf(given), existing, kind);
      const valid = validated(given, { kind, name: place.name, mode: options.fieldValidation });
      const next = stampChange(valid.object, existing);
      warnings = [...valid.warnings, ...kind.advice(next)];
      return isFinished(next) ? undefined : next;
    };
    if (options.dryRun) {
      const existing = await this.existing(place);
      const object = change(existing) ?? existing;
      return {
        object: withResourceVersion(object, Number(existing.metadata.resourceVersion)),
        warnings,
        revision: 0,
      };
    }
    const { object, revision } = await this.objects.change(place.namespace, place.name, change);
    return { object, warnings, revision };
  }

  private async existing({ namespace, name }: Place): Promise<ApiObject> {
    const existing = await this.objects.read(namespace, name);
    if (existing === undefined) throw notFound({ plural: this.objects.kind.plural, name });
    return existing;
  }
}

function metadataOf(object: JsonMap): JsonMap {
  return isMap(object['metadata']) ? object['metadata'] : {};
}

/** Marked for deletion and nobody holds it back any more. */
function isFinished({ metadata }: ApiObject): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.finalizers === undefined;
}
