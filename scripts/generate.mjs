// Generates libs/protocol/src/generated from proto/. With --check: fails when what is committed is not fresh.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exit } from 'node:process';

const target = 'libs/protocol/src/generated';
const check = process.argv.includes('--check');

function files(directory) {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort();
}

function generateInto(directory) {
  const args = ['generate', '--template', 'buf.gen.yaml', '--output', directory];
  const run = spawnSync('buf', args, { stdio: 'inherit' });
  if (run.status !== 0) exit(run.status ?? 1);
}

const scratch = mkdtempSync(join(tmpdir(), 'bulwark-generate-'));
try {
  generateInto(scratch);
  const made = join(scratch, target);
  if (check) {
    const same =
      files(made).join() === files(target).join() &&
      files(made).every((name) => readFileSync(join(made, name)).equals(readFileSync(join(target, name))));
    if (!same) {
      console.error(`${target} is not what proto/ generates. Run: npm run generate`);
      exit(1);
    }
  } else {
    rmSync(target, { recursive: true, force: true });
    cpSync(made, target, { recursive: true });
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
