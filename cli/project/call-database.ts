import { askServer } from './ask-server.ts';
import { CommandError } from './command-error.ts';

/** Calls a function of the engine through the Data API. Throws a CommandError where it does not answer. */
export async function callDatabase<Answer>(
  url: string,
  headers: Record<string, string>,
  name: string,
  args: Record<string, unknown> = {},
): Promise<Answer> {
  const response = await askServer(`${url}/rest/v1/rpc/${name}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(args),
  });
  if (response.status === 404) {
    throw new CommandError(`There is no Millrace in the database at ${url}: run \`npx supabase db push\` first.`);
  }
  if (response.status === 401)
    throw new CommandError(`${url} does not know that secret key: take one of this project.`);
  if (!response.ok) {
    throw new CommandError(`The Data API answered ${response.status}: ${(await response.text()).slice(0, 300)}`);
  }
  return (await response.json()) as Answer;
}
