// The servers and tools that tests need: from the PATH, else from Debian's packages, unpacked into .cache/servers.
// `node scripts/servers.mjs NAME` prints the path of one. Plain Node 20, no dependencies.
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { argv, env, exit, getuid } from 'node:process';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const cache = join(root, '.cache', 'servers');
const lockTimeout = ['-o', 'DPkg::Lock::Timeout=120'];

/**
 * `names`: what it may be called on the PATH. `packages`: Debian's, unpacked side by side; `binary`: the path inside.
 * `libraries`: the binary needs the shared libraries unpacked with it. `install`: too many dependencies to unpack, so
 * it is installed for the whole machine, which needs root.
 */
const servers = {
  etcd: { names: ['etcd'], packages: ['etcd-server'], binary: 'usr/bin/etcd' },
  etcdctl: { names: ['etcdctl'], packages: ['etcd-client'], binary: 'usr/bin/etcdctl' },
  promtool: { names: ['promtool'], packages: ['prometheus'], binary: 'usr/bin/promtool' },
  prometheus: { names: ['prometheus'], packages: ['prometheus'], binary: 'usr/bin/prometheus' },
  strace: {
    names: ['strace'],
    packages: ['strace', 'libunwind8'],
    binary: 'usr/bin/strace',
    libraries: true,
  },
  nginx: { names: ['nginx'], packages: ['nginx'], binary: 'usr/sbin/nginx' },
  haproxy: {
    names: ['haproxy'],
    packages: ['haproxy', 'liblua5.3-0', 'libopentracing-c-wrapper0', 'libopentracing1'],
    binary: 'usr/sbin/haproxy',
    libraries: true,
  },
  chromium: {
    names: ['chromium', 'chromium-browser', 'google-chrome'],
    packages: ['chromium'],
    install: true,
  },
};

/** The path of a runnable binary. Throws an Error that says what to install. */
export function findOrFetch(name) {
  const server = servers[name];
  if (!server) throw new Error(`Unknown server ${name}: known are ${Object.keys(servers).join(', ')}.`);
  const found = onPath(server.names);
  if (found) return found;
  const cached = join(cache, name, server.libraries ? 'run' : (server.binary ?? ''));
  if (!server.install && fs.existsSync(cached)) return cached;
  try {
    if (!server.install) return unpack(name, server, cached);
    install(server.packages);
    const installed = onPath(server.names);
    if (installed) return installed;
    throw new Error('the package holds no such program');
  } catch (error) {
    throw new Error(
      `${name} is not on the PATH and could not be fetched from Debian's packages: ${reason(error)}\n` +
        `Install it and try again: apt-get install ${server.packages[0]}, or put ${server.names.join(' or ')} on the PATH.`,
      { cause: error },
    );
  }
}

function onPath(names) {
  for (const directory of (env.PATH ?? '').split(delimiter)) {
    for (const name of names) {
      const path = join(directory, name);
      if (directory !== '' && runnable(path)) return path;
    }
  }
  return undefined;
}

function runnable(path) {
  try {
    fs.accessSync(path, fs.constants.X_OK);
    return fs.statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Unpacks beside the target and renames, so that two processes at once, or a kill, leave no half-unpacked folder. */
function unpack(name, server, target) {
  fs.mkdirSync(cache, { recursive: true });
  const scratch = fs.mkdtempSync(join(cache, `${name}-`));
  try {
    afterUpdateIfNeeded(() => apt(['download', ...server.packages], scratch));
    const tree = join(scratch, 'tree');
    for (const file of fs.readdirSync(scratch).filter((each) => each.endsWith('.deb'))) {
      execFileSync('dpkg', ['-x', join(scratch, file), tree], { stdio: 'pipe' });
    }
    if (!fs.existsSync(join(tree, server.binary)))
      throw new Error(`no ${server.binary} in ${server.packages}`);
    if (server.libraries) writeRunner(tree, server.binary);
    try {
      fs.renameSync(tree, join(cache, name));
    } catch (error) {
      if (!fs.existsSync(target)) throw error;
    }
    return target;
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true });
  }
}

function writeRunner(tree, binary) {
  const triplet = fs.readdirSync(join(tree, 'usr', 'lib')).find((each) => each.includes('linux-gnu')) ?? '';
  const run = join(tree, 'run');
  const script = `#!/bin/sh\nhere=$(dirname "$0")\nLD_LIBRARY_PATH="$here/usr/lib/${triplet}" exec "$here/${binary}" "$@"\n`;
  fs.writeFileSync(run, script);
  fs.chmodSync(run, 0o755);
}

function install(packages) {
  if (getuid?.() !== 0) throw new Error('installing it needs root');
  afterUpdateIfNeeded(() => apt(['install', '-y', '--no-install-recommends', ...packages], root));
}

/** Package lists may be absent (a fresh container) or name versions that are gone: then one update and a second try. */
function afterUpdateIfNeeded(task) {
  try {
    task();
  } catch {
    apt(['update'], root);
    task();
  }
}

function apt(args, cwd) {
  const options = {
    cwd,
    stdio: 'pipe',
    env: { ...env, DEBIAN_FRONTEND: 'noninteractive' },
    timeout: 300_000,
  };
  execFileSync('apt-get', ['-q', ...lockTimeout, ...args], options);
}

function reason(error) {
  if (error.code === 'ENOENT') return `there is no ${error.path ?? 'apt-get'} here`;
  const lines = String(error.stderr ?? '')
    .trim()
    .split('\n')
    .filter(Boolean);
  return lines.at(-1) ?? error.message;
}

if (argv[1] && fileURLToPath(import.meta.url) === argv[1]) {
  try {
    console.log(findOrFetch(argv[2] ?? ''));
  } catch (error) {
    console.error(error.message);
    exit(1);
  }
}
