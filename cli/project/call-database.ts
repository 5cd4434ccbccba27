import { CommandError } from '../command-error.ts';
import { askServer } from './ask-server.ts';

/** The headers of a call with JSON. A project may serve another schema than `public` first, so the call names it. */
export const jsonOfPublic = { 'content-type': 'application/json', 'content-profile': 'public' };

/** Returns the answer 406 in words: the Data API serves other schemas alone. */
export const notServed = (url: string) =>
  `The Data API of ${url} does not serve the schema public, by which functions reach the engine: add public to the exposed schemas ` +
  '(dashboard: Integrations, Data API; locally `schemas` below [api] in the configuration).';

/** Calls a function of the engine through the Data API. Throws a CommandError where it does not answer. */
export async function callDatabase<Answer>(
  url: string,
  headers: Record<string, string>,
  name: string,
  args: Record<string, unknown> = {},
): Promise<Answer> {
  const response = await askServer(`${url}/rest/v1/rpc/${name}`, {
    method: 'POST',
    headers: { ...headers, ...jsonOfPublic },
    body: JSON.stringify(args),
  });
  if (response.status === 404) {
    throw new CommandError(`There is no Millrace in the database at ${url}: run \`npx supabase db push\` first.`, 4);
  }
  if (response.status === 406) throw new CommandError(notServed(url), 4);
  if (response.status === 401)
    throw new CommandError(`${url} does not know that secret key: take one of this project.`, 3);
  if (!response.ok) {
    const said = (await response.text()).slice(0, 300);
    throw new CommandError(`The Data API answered ${response.status}: ${said}`, response.status < 500 ? 3 : 4);
  }
  return (await response.json()) as Answer;
}
