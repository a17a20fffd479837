// npm test: installs, builds, and runs all tests. The last line is `N passed, N failed, N skipped`.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { childEnvironment, prepare, root } from './prepare.mjs';

const totals = { passed: 0, failed: 0, skipped: 0 };

/** A step that is one test by itself: format, lint, boundaries, types, protocol. */
function step(name, args) {
  const started = performance.now();
  const child = spawnSync('npm', ['run', '--silent', ...args], {
    cwd: root,
    env: childEnvironment(),
    stdio: 'inherit',
  });
  const ok = child.status === 0;
  totals[ok ? 'passed' : 'failed'] += 1;
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${name} (${seconds(started)} s)`);
}

/** Runs one vitest project and adds up what it says in its JSON report; a run without a report is one failure. */
function project(name) {
  const scratch = mkdtempSync(join(tmpdir(), 'bulwark-test-'));
  const report = join(scratch, 'report.json');
  const started = performance.now();
  const args = ['run', '--project', name, '--reporter=dot', '--reporter=json', `--outputFile.json=${report}`];
  const child = spawnSync('vitest', args, { cwd: root, env: childEnvironment(), stdio: 'inherit' });
  try {
    const result = JSON.parse(readFileSync(report, 'utf8'));
    totals.passed += result.numPassedTests;
    totals.failed += result.numFailedTests;
    totals.skipped += result.numPendingTests + (result.numTodoTests ?? 0);
    const silent = child.status !== 0 && result.numFailedTests === 0;
    if (silent) totals.failed += 1;
    console.log(`${child.status === 0 ? 'ok    ' : 'FAILED'} ${name} tests (${seconds(started)} s)`);
  } catch (error) {
    totals.failed += 1;
    console.log(`FAILED ${name} tests: no report (${error.message})`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function seconds(started) {
  return ((performance.now() - started) / 1000).toFixed(1);
}

prepare();
for (const name of ['format', 'lint', 'boundaries', 'types', 'proto']) step(name, [`check:${name}`]);
for (const name of ['unit', 'real', 'fault']) project(name);
console.log(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
process.exit(totals.failed === 0 ? 0 : 1);
