import { expect, it } from 'vitest';
import { isLoopback } from './grpc-peer.js';
import { hostOfTarget } from './grpc-target.js';

it.each([
  ['dns:fraud.shop.svc:8080', 'fraud.shop.svc'],
  ['dns:///fraud:8080', 'fraud'],
  ['dns://8.8.8.8/fraud:8080', 'fraud'],
  ['dns:localhost', 'localhost'],
  ['localhost:50051', 'localhost'],
  ['fraud', 'fraud'],
  ['ipv4:10.0.0.1:80,10.0.0.2:80', '10.0.0.1'],
  ['ipv6:[::1]:80', '::1'],
  ['ipv6:::1', '::1'],
  ['[fe80::1]:80', 'fe80::1'],
  ['xds:///reviews', 'reviews'],
  ['unix:///run/fraud.sock', '///run/fraud.sock'],
  ['unix:/run/fraud.sock', '/run/fraud.sock'],
  ['', ''],
])('the host of the target %s is %s', (target, host) => {
  expect(hostOfTarget(target)).toBe(host);
});

it.each([
  ['127.0.0.1', true],
  ['127.8.9.10', true],
  ['::1', true],
  ['::ffff:127.0.0.1', true],
  ['10.0.0.1', false],
  ['::ffff:10.0.0.1', false],
  ['127.0.0.1.example.com', false],
  [undefined, false],
])('the peer %s is on this machine: %s', (address, expected) => {
  expect(isLoopback({ address, certificate: undefined })).toBe(expected);
});
