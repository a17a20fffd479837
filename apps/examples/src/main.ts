import { examples } from './examples.js';

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const [name] = process.argv.slice(2);
const example = examples.find((candidate) => candidate.name === name);
if (name === undefined) {
  say('npm run example -- NAME, where NAME is one of');
  for (const { name, shows } of examples) say(`  ${name.padEnd(8)} ${shows}`);
} else if (example === undefined) {
  process.stderr.write(
    `there is no example ${name}; there are: ${examples.map(({ name }) => name).join(', ')}\n`,
  );
  process.exitCode = 64;
} else {
  const { run } = await example.load();
  await run(say);
}
