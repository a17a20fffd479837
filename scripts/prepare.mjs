// Installs and builds a checkout, doing only what is not done yet. Plain Node 20: it runs before anything is installed.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = join(root, 'node_modules', '.bin');
const stamp = join(root, 'node_modules', '.cache', 'bulwark-installed');

/** The pinned Node where the platform has it, else the one that runs this. */
export function nodePath() {
  const pinned = join(bin, 'node');
  return existsSync(pinned) ? pinned : process.execPath;
}

/** The environment of every child: the pinned Node and the workspace's tools come first on the PATH. */
export function childEnvironment(extra = {}) {
  return { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH ?? ''}`, ...extra };
}

/** Runs a command to its end; a failure ends this process with the same code. */
export function run(command, args, { quiet = false, env = {}, hint = '' } = {}) {
  const child = spawnSync(command, args, {
    cwd: root,
    env: childEnvironment(env),
    stdio: quiet ? ['ignore', 'pipe', 'pipe'] : ['ignore', 'inherit', 'inherit'],
    encoding: 'utf8',
  });
  if (child.error) {
    console.error(`Could not run ${command}: ${child.error.message}`);
    process.exit(1);
  }
  if (child.status !== 0) {
    if (quiet) console.error(`${child.stdout ?? ''}${child.stderr ?? ''}`);
    console.error(`Failed: ${command} ${args.join(' ')}`);
    if (hint !== '') console.error(hint);
    process.exit(child.status ?? 1);
  }
}

function lockfileHash() {
  return createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
}

function installed() {
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === lockfileHash();
}

export function prepare() {
  const [major = 0] = process.versions.node.split('.').map(Number);
  if (major < 20) {
    console.error(`Node ${process.versions.node} is too old: Bulwark needs Node 20 or newer.`);
    process.exit(1);
  }
  if (!installed()) {
    console.error('Installing the packages named in package-lock.json (once) …');
    run('npm', ['ci', '--no-audit', '--no-fund'], {
      quiet: true,
      hint: 'The packages could not be installed. Is the npm registry reachable from here? Then run the same command again.',
    });
    mkdirSync(dirname(stamp), { recursive: true });
    writeFileSync(stamp, lockfileHash());
  }
  run(nodePath(), [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-b']);
}
