import * as grpc from '@grpc/grpc-js';
import { fromJSON, loadSync } from '@grpc/proto-loader';
import { temporaryDirectory } from '@bulwark/testing';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ArgumentError } from '../index.js';
import { idempotencyLevels } from './idempotency-levels.js';

const PROTO = `
  syntax = "proto3";
  package shop;
  enum Size { SMALL = 0; }
  message Cart { string id = 1; Size size = 2; message Line { string item = 1; } }
  service Carts {
    rpc Get(Cart) returns (Cart) { option idempotency_level = NO_SIDE_EFFECTS; }
    rpc Put(Cart) returns (stream Cart) { option idempotency_level = IDEMPOTENT; }
    rpc Pay(Cart) returns (Cart);
  }
  service Prices { rpc Find(Cart) returns (Cart) { option idempotency_level = NO_SIDE_EFFECTS; } }
  service Later {}
`;

function loaded() {
  const directory = temporaryDirectory();
  onTestFinished(() => directory.remove());
  const file = join(directory.path, 'shop.proto');
  writeFileSync(file, PROTO);
  return loadSync(file);
}

const carts = { 'shop.Carts/Get': 'NO_SIDE_EFFECTS', 'shop.Carts/Put': 'IDEMPOTENT' };

describe('idempotency levels', () => {
  it('are read from everything @grpc/proto-loader loaded, and from one service of it', () => {
    const definition = loaded();
    const all = { ...carts, 'shop.Prices/Find': 'NO_SIDE_EFFECTS' };
    expect(idempotencyLevels(definition)).toEqual(all);
    expect(idempotencyLevels(definition['shop.Carts'] ?? {})).toEqual(carts);
    const { shop } = grpc.loadPackageDefinition(definition) as unknown as {
      shop: { Carts: grpc.ServiceClientConstructor; Prices: grpc.ServiceClientConstructor };
    };
    expect(idempotencyLevels(shop.Carts.service, shop.Prices.service)).toEqual(all);
  });

  it('are none where definitions kept no options', () => {
    expect(idempotencyLevels({ Bare: { path: '/x.Y/Z' }, Old: { path: '/x.Y/O', options: {} } })).toEqual({});
    expect(idempotencyLevels(fromJSON({ nested: { Only: { fields: {} } } }))).toEqual({});
  });

  it.each<[string, unknown[], RegExp]>([
    ['nothing', [], /the definition \(absent\) must be what @grpc\/proto-loader's loadSync gives/],
    ['an empty object', [{}], /{} must be/],
    ['a path', ['carts.proto'], /"carts.proto" must be/],
    ['the promise of `load`', [Promise.resolve({})], /must be/],
    ['levels themselves', [carts], /"shop.Carts\/Get" "NO_SIDE_EFFECTS", which is no service/],
    [
      'a client’s constructor',
      [grpc.makeGenericClientConstructor({}, 'Carts')],
      /a client's constructor must be .*: its "service"/,
    ],
    ['what loadPackageDefinition gives', [{ shop: { Carts: () => undefined } }], /"shop" .*no service/],
    ['a wrong one beside a right one', [{ A: { path: '/x.Y/A' } }, null], /null must be/],
  ])('cannot be read from %s, which is said', (_what, given, message) => {
    const read = () => idempotencyLevels(...(given as object[]));
    expect(read).toThrow(ArgumentError);
    expect(read).toThrow(message);
  });
});
