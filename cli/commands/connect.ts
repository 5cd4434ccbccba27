// millrace connect: tells a project's database where its functions are, and with what to wake them.
import { findRunningStack } from '../../local/platform/running-stack.ts';
import { CommandError } from '../command-error.ts';
import { defineCommand, remoteOption } from '../define-command.ts';
import { findTarget, targetAt } from '../operate/find-target.ts';
import { askServer } from '../project/ask-server.ts';
import { awaitWakeUp } from '../project/await-wake-up.ts';
import { findProject } from '../project/find-project.ts';
import { keepPage } from '../project/keep-page.ts';
import { findingLines, readHealth } from '../project/read-health.ts';
import { lostRows, writeLostRows } from '../sync/lost-rows.ts';

export const connect = defineCommand({
  usage: `npx millrace connect [--page=URL] [--remote[=REF]]
  Has the deployed function millrace write its own address, and an HMAC of your secret key, into Vault, with which the database
  wakes functions; waits up to 20 s until the database has woken one. Asks the local stack, or the project at SUPABASE_URL, with
  SUPABASE_SECRET_KEY; for a hosted project without it, with what \`supabase projects api-keys --reveal\` tells.
  --page=URL  where you host the operator's page, which messages about alerts link to
  --remote[=REF]  the project that the folder is linked to, or the one of this reference, branch or URL`,
  options: { ...remoteOption, page: { type: 'string' } },
  run: async ({ values }) => {
    const { url, headers } = await findTarget({ ...values, revealsKey: true });
    const { secret, project_url } = await connectTarget(url, headers);
    const project = findProject(values.workdir);
    const { root } = project;
    const own = findRunningStack(root)?.apiUrl === url ? `${url}/operate/` : null;
    const page_url = await keepPage(url, headers, values.page ?? own);
    const target = targetAt(url, root, values.remote);
    const found = await readHealth(url, headers);
    const lost = lostRows(project, found);
    const written = lost ? [await writeLostRows(project, lost, target)] : [];
    const health = lost ? await readHealth(url, headers) : found;
    const query = `npx supabase db query ${target}`.trim();
    if (values.json) return JSON.stringify({ project_url, secret, page_url, ...health });
    return [
      `The database wakes functions at ${project_url}, with ${secret}; a wake-up was answered.`,
      page_url
        ? `Messages about alerts link to ${page_url}.`
        : 'Messages about alerts link to no page: say where you host it by --page=URL.',
      ...written,
      ...(health.findings.length === 0
        ? ['doctor() finds all well.']
        : ['Checks of doctor() still fail:', ...findingLines(health.findings, query)]),
    ].join('\n');
  },
});

export interface Connected {
  project_url: string;
  secret: string;
  /** The id by which the database finds the answer to its wake-up. */
  wake_up: number | null;
}

/** Where the gateway is for the database of `supabase start`, of self-hosting since it runs Envoy, and of both before. */
const gateways = ['http://api.supabase.internal:8000', 'http://api-gw:8000', 'http://kong:8000'];

/**
 * Connects the project at the address that its functions see, or else at a gateway's, where the database cannot reach that one.
 * Resolves to the function's answer once a wake-up was answered. Throws a CommandError that says why it cannot connect.
 */
export async function connectTarget(url: string, headers: Record<string, string>): Promise<Connected> {
  const own = await callConnect(url, headers);
  const fault = await awaitWakeUp(url, headers, own);
  if (!fault) return own;
  // A hosted project has no other address.
  if (own.project_url.startsWith('https:')) throw fault;
  for (const project_url of gateways) {
    const other = await callConnect(url, headers, { project_url });
    if (!(await awaitWakeUp(url, headers, other))) return other;
  }
  await callConnect(url, headers);
  throw fault;
}

/** Calls the project's function. Resolves to what it answered. Throws a CommandError that says what stands in the way. */
async function callConnect(
  url: string,
  headers: Record<string, string>,
  asked: { project_url?: string } = {},
): Promise<Connected> {
  const address = `${url}/functions/v1/millrace/connect`;
  const sent = { ...headers, 'content-type': 'application/json' };
  const response = await askServer(address, { method: 'POST', headers: sent, body: JSON.stringify(asked) });
  const body = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  if (response.ok) return body as unknown as Connected;
  const message = (body.error as { message?: string } | undefined)?.message ?? JSON.stringify(body).slice(0, 300);
  if (response.status === 404) {
    throw new CommandError(`There is no function millrace at ${url}: run \`npx supabase functions deploy\` first.`, 4);
  }
  if (response.status === 401) throw new CommandError(`${url} does not know that secret key: ${message}`, 3);
  throw new CommandError(`${address} answered ${response.status}: ${message}`, response.status < 500 ? 3 : 4);
}
