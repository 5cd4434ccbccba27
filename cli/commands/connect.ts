// millrace connect: tells a project's database where its functions are, and with what to wake them.
import { defineCommand, remoteOption } from '../define-command.ts';
import { reachProject } from '../operate/reach-project.ts';
import { askServer } from '../project/ask-server.ts';
import { CommandError } from '../project/command-error.ts';
import { findProject } from '../project/find-project.ts';
import { readHealth } from '../project/read-health.ts';
import { revealSecretKey } from '../project/reveal-secret-key.ts';

export const connect = defineCommand({
  usage: `npx millrace connect [--remote[=REF]]
  Has the deployed function millrace write its own address, and an HMAC of your secret key, into Vault, with which the database
  wakes functions. Asks the local stack, or the project at SUPABASE_URL. Takes the key from SUPABASE_SECRET_KEY; for a hosted
  project without it, from \`supabase projects api-keys --reveal\`.
  --remote[=REF]  the project that the folder is linked to, or the one of this reference, in the place of SUPABASE_URL`,
  options: remoteOption,
  run: async ({ values }) => {
    // reachProject() reads it there.
    if (values.remote !== undefined && !process.env.SUPABASE_SECRET_KEY) {
      process.env.SUPABASE_SECRET_KEY = await revealSecretKey(values.remote, findProject(values.workdir).root);
    }
    const { url, headers } = reachProject(values);
    const { project_url, secret } = await callConnect(url, headers);
    const health = await readHealth(url, headers);
    if (values.json) return JSON.stringify({ project_url, secret, ...health });
    const told = `The database wakes functions at ${project_url}, with ${secret}.`;
    return [
      told,
      ...(health.ok
        ? ['doctor() finds all well.']
        : ['doctor() still finds:', ...health.amiss.map((line) => `  ${line}`)]),
    ].join('\n');
  },
});

/** Calls the project's function. Resolves to what it answered. Throws a CommandError that says what stands in the way. */
async function callConnect(
  url: string,
  headers: Record<string, string>,
): Promise<{ project_url: string; secret: string }> {
  const address = `${url}/functions/v1/millrace/connect`;
  const response = await askServer(address, { method: 'POST', headers });
  const body = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  if (response.ok) return body as { project_url: string; secret: string };
  const message = (body.error as { message?: string } | undefined)?.message ?? JSON.stringify(body).slice(0, 300);
  if (response.status === 404) {
    throw new CommandError(`There is no function millrace at ${url}: run \`npx supabase functions deploy\` first.`);
  }
  if (response.status === 401) throw new CommandError(`${url} does not know that secret key: ${message}`);
  throw new CommandError(`${address} answered ${response.status}: ${message}`);
}
