import { createInterface } from 'node:readline';
import { Interrupted } from './command-error.js';

/**
 * Asks a person on the terminal; only y or yes is a yes, and a closed input is a no.
 * @throws Interrupted on Ctrl-C
 */
export function ask(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  return new Promise((resolve, reject) => {
    terminal.once('SIGINT', () => {
      process.stderr.write('\n');
      reject(new Interrupted());
      terminal.close();
    });
    terminal.once('close', () => resolve(false));
    terminal.question(question, (answer) => {
      resolve(/^y(es)?$/i.test(answer.trim()));
      terminal.close();
    });
  });
}
