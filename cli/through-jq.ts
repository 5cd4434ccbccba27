// The option --jq: what a command prints for programs goes through the jq that is installed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { CommandError } from './command-error.ts';

/**
 * Runs a command with its output as the input of jq, as `--json | jq EXPRESSION` does. Throws a CommandError before it runs the
 * command where jq cannot be started, and afterwards where jq fails, which says why itself.
 *
 * @param run Resolves to what is printed at the end.
 */
export async function throughJq(expression: string, run: () => Promise<string>): Promise<string> {
  const jq = spawn('jq', [expression], { stdio: ['pipe', 'inherit', 'inherit'] });
  const ended = once(jq, 'close');
  await Promise.race([once(jq, 'spawn'), ended]).catch(({ message }: Error) => {
    throw new CommandError(`--jq runs jq, which cannot be started (${message}): install jq, or take --json.`);
  });
  // A mistake in the expression ends jq before it has read all.
  jq.stdin.on('error', () => {});
  const { write } = process.stdout;
  process.stdout.write = jq.stdin.write.bind(jq.stdin) as typeof write;
  try {
    const told = await run();
    if (told) console.log(told);
  } finally {
    process.stdout.write = write;
    jq.stdin.end();
    await ended;
  }
  if (jq.exitCode !== 0) throw new CommandError('jq failed: correct the expression of --jq.', 2);
  return '';
}
