import { expect, it } from 'vitest';
import { refusedHost } from './host-rule.js';

const loopback = { host: '127.0.0.1', port: 9443 };

it.each(['localhost', 'LOCALHOST:9443', '127.0.0.1:9443', '127.9.9.9', '[::1]:9443', '[::1]', undefined])(
  'a loopback server answers to %s',
  (host) => expect(refusedHost(host, loopback)).toBeUndefined(),
);

it.each([
  'evil.example:9443',
  'evil.example',
  '10.0.0.1',
  'localhost.evil.example',
  '127.0.0.1.evil.example',
  '',
])('a loopback server does not answer to "%s"', (host) =>
  expect(refusedHost(host, loopback)).toMatchObject({ code: 403, reason: 'Forbidden' }),
);

it('a server that others reach answers to any name', () => {
  expect(refusedHost('bulwark.example', { host: '0.0.0.0', port: 9443 })).toBeUndefined();
});
