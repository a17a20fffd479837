import { describe, expect, it } from 'vitest';
import { readConfig, type ServerConfig } from './server-config.js';

const noFile = (): string => {
  throw new Error('no such file');
};

function accepted(argv: readonly string[], env = {}, readFile = noFile): ServerConfig {
  const result = readConfig(argv, env, readFile);
  if (result.kind !== 'config') throw new Error(JSON.stringify(result));
  return result.config;
}

function problems(argv: readonly string[], env = {}, readFile = noFile): readonly string[] {
  const result = readConfig(argv, env, readFile);
  return result.kind === 'wrong' ? result.problems : [];
}

describe('the server configuration', () => {
  it('serves loopback from a file store when nothing is said', () => {
    expect(accepted([])).toMatchObject({
      store: 'file:.bulwark',
      http: { host: '127.0.0.1', port: 9443 },
      grpc: { host: '127.0.0.1', port: 9444 },
      defaultRollout: 'immediate',
      loopback: true,
    });
  });

  it('takes a flag over the environment and the environment over the file', () => {
    const file = (): string => 'http: 127.0.0.1:1\ngrpc: 127.0.0.1:2\nid: from-file\npeer: ["a:1", "b:2"]\n';
    const env = { BULWARK_CONFIG: 'server.yaml', BULWARK_HTTP: '127.0.0.1:3', BULWARK_GRPC: '127.0.0.1:4' };
    const config = accepted(['--grpc=[::1]:5'], env, file);
    expect(config.http.port).toBe(3);
    expect(config.grpc).toEqual({ host: '::1', port: 5 });
    expect(config.id).toBe('from-file');
    expect(config.peers).toEqual(['a:1', 'b:2']);
  });

  it('tells every problem at once, with what was got and what is allowed', () => {
    const found = problems(['--htp', ':1', '--grpc', '127.0.0.1:99999', '--store', 'redis:x', '--id', 'A/B']);
    expect(found).toContain('--htp is unknown; did you mean --http?');
    expect(found.join('\n')).toContain('--grpc: "127.0.0.1:99999" is not HOST:PORT');
    expect(found.join('\n')).toContain('--store: "redis:x"');
    expect(found.join('\n')).toContain('--id: "A/B"');
  });

  it('refuses to be reached from elsewhere in plain text unless told so', () => {
    expect(problems(['--http', '0.0.0.0:9443']).join()).toContain('--insecure-listen');
    const config = accepted(['--http', '0.0.0.0:9443', '--insecure-listen']);
    expect(config).toMatchObject({ loopback: false, defaultRollout: 'standard' });
  });

  it('refuses to advertise an address at which each replica finds itself', () => {
    const open = ['--insecure-listen', '--store', 'etcd:http://127.0.0.1:2379'];
    for (const host of ['0.0.0.0', '[::]']) {
      expect(problems([...open, '--grpc', `${host}:9444`]).join()).toContain('--advertise-grpc');
    }
    accepted([...open, '--grpc', '0.0.0.0:9444', '--advertise-grpc', '10.0.0.7:9444']);
    accepted([...open, '--grpc', '10.0.0.7:9444']);
    accepted(['--insecure-listen', '--grpc', '0.0.0.0:9444']);
  });

  it('refuses a flag without its value, a flag given twice and one port for both', () => {
    expect(problems(['--http', '--id', 'a'])).toEqual(['--http needs a value: --http HOST:PORT']);
    expect(problems(['--id', 'a', '--id', 'b'])).toEqual(['--id is given twice']);
    expect(problems(['--http', '127.0.0.1:5', '--grpc', '127.0.0.1:5'])[0]).toContain('two ports');
  });

  it('names the option of the file that is unknown or of another shape, and the file that is not there', () => {
    expect(problems(['--config', 'x.yaml'])).toEqual(['--config x.yaml: no such file']);
    const found = problems(['--config', 'x.yaml'], {}, () => 'htpp: a\nhttp: {a: b}\n');
    expect(found[0]).toContain('"htpp" in x.yaml is unknown; did you mean --http?');
    expect(found[1]).toContain('"http" in x.yaml must be one value');
  });
});
