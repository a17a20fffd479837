import { describe, expect, it } from 'vitest';
import { LOOPBACK_PEERS, parseTrustedPeers } from './trusted-peers.js';

function peers(text: string) {
  const problems: string[] = [];
  const trusted = parseTrustedPeers(text, problems);
  expect(problems).toEqual([]);
  return (address: string | undefined) => trusted.trusts(address);
}

describe('trusted peers', () => {
  it('are this machine by default, however its address is written', () => {
    const trusts = peers(LOOPBACK_PEERS);
    for (const address of ['127.0.0.1', '127.255.0.9', '::1', '::ffff:127.0.0.1']) {
      expect(trusts(address), address).toBe(true);
    }
    for (const address of ['10.0.0.1', '128.0.0.1', '::2', '::ffff:10.0.0.1', 'localhost', '', undefined]) {
      expect(trusts(address), address).toBe(false);
    }
  });

  it('are networks and single addresses of both families, edges included', () => {
    const trusts = peers(' 10.1.0.0/16, 192.0.2.7 ,fd00::/8,2001:db8::1');
    for (const address of ['10.1.0.0', '10.1.255.255', '192.0.2.7', 'fd12::9', '2001:db8::1']) {
      expect(trusts(address), address).toBe(true);
    }
    for (const address of ['10.0.255.255', '10.2.0.0', '192.0.2.8', 'fe80::1', '2001:db8::2', '127.0.0.1']) {
      expect(trusts(address), address).toBe(false);
    }
    expect(peers('0.0.0.0/0')('203.0.113.9')).toBe(true);
    expect(peers('none')('127.0.0.1')).toBe(false);
  });

  it('are told with each of their problems', () => {
    const problems: string[] = [];
    const wrong = [
      '10.0.0.0/33',
      'fd00::/129',
      'localhost',
      '10.0.0.0/8/8',
      '10.0.0.0/',
      '',
      'fe80::1%lo',
      'none',
    ];
    parseTrustedPeers(['10.0.0.1', ...wrong].join(','), problems);
    expect(problems).toHaveLength(wrong.length);
    wrong.forEach((part, at) => expect(problems[at]).toContain(`--trusted-peers "${part}"`));
  });
});
