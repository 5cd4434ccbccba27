import { askServer } from './ask-server.ts';
import { CommandError } from './command-error.ts';

/** Whether the database is well; `amiss` has what doctor() finds otherwise, each with its remedy. */
export interface Health {
  ok: boolean;
  amiss: string[];
}

/** Asks the database how it is, through the Data API. Throws a CommandError where it does not say. */
export async function readHealth(url: string, headers: Record<string, string>): Promise<Health> {
  const response = await askServer(`${url}/rest/v1/rpc/millrace_health`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: '{}',
  });
  if (response.status === 404) {
    throw new CommandError(`There is no Millrace in the database at ${url}: run \`npx supabase db push\` first.`);
  }
  if (response.status === 401)
    throw new CommandError(`${url} does not know that secret key: take one of this project.`);
  if (!response.ok) {
    throw new CommandError(`The Data API answered ${response.status}: ${(await response.text()).slice(0, 300)}`);
  }
  const { ok, findings } = (await response.json()) as Health & { findings: { what: string; detail: string }[] };
  return { ok, amiss: findings.map(({ what, detail }) => `${what}: ${detail}`) };
}
