import pg from 'pg';
import { type Stack, type StackOptions, startStack } from '../../local/platform/stack.ts';

/** Measures on a stack of its own, with a session of its owner. An error tells what the stack's functions wrote last. */
export async function onAStack<Found>(
  options: StackOptions,
  measure: (stack: Stack, client: pg.Client) => Promise<Found>,
): Promise<Found> {
  const said: string[] = [];
  const stack = await startStack({ ...options, log: (source, line) => said.push(`${source}: ${line}`) });
  const client = new pg.Client({ connectionString: stack.dbUrl });
  try {
    await client.connect();
    return await measure(stack, client);
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}\nIt wrote:\n${said.slice(-10).join('\n')}`);
  } finally {
    await client.end();
    await stack.stop();
  }
}
