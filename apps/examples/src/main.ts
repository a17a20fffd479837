import { examples } from './examples.js';

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const [name] = process.argv.slice(2);
const example = examples.find((candidate) => candidate.name === name);
if (example === undefined) {
  const usage = [
    name === undefined ? 'Which example?' : `There is no example "${name}"`,
    'npm run example -- NAME',
    ...examples.map(({ name, shows }) => `  ${name.padEnd(8)} ${shows}`),
  ];
  process.stderr.write(`${usage.join('\n')}\n`);
  process.exitCode = 64;
} else {
  const { run } = await example.load();
  await run(say);
}
