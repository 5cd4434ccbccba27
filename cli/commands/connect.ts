// millrace connect: tells a project's database where its functions are, and with what to wake them.
import { defineCommand, remoteOption } from '../define-command.ts';
import { CommandError } from '../project/command-error.ts';

export const connect = defineCommand({
  usage: `npx millrace connect [--remote=REF]
  Has the deployed function millrace write its own address, and an HMAC of your secret key, into Vault, with which the database
  wakes functions. Takes the key from SUPABASE_SECRET_KEY.
  --remote=REF  the project's reference, in the place of SUPABASE_URL`,
  options: remoteOption,
  run: async ({ values }) => {
    const url = (values.remote ? `https://${values.remote}.supabase.co` : process.env.SUPABASE_URL)?.replace(
      /\/+$/,
      '',
    );
    const secretKey = process.env.SUPABASE_SECRET_KEY;
    if (!url) throw new CommandError('Name the project with --remote=REF, or set SUPABASE_URL.', 2);
    if (!secretKey) {
      throw new CommandError(
        'SUPABASE_SECRET_KEY is not set: set it to a secret key of the project (npx supabase projects api-keys --reveal).',
        2,
      );
    }
    const { project_url, secret } = await callConnect({ url, secretKey });
    const health = await readHealth({ url, secretKey });
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

const ANSWER_TIME_MS = 15_000;

/** Where a project answers, and a secret key of it. */
interface Connection {
  url: string;
  secretKey: string;
}

/** Whether the database is well by now; `amiss` has what it says of itself otherwise. */
interface Health {
  ok: boolean;
  amiss: string[];
}

/** Calls the project's function. Resolves to what it answered. Throws a CommandError that says what stands in the way. */
async function callConnect({ url, secretKey }: Connection): Promise<{ project_url: string; secret: string }> {
  const address = `${url}/functions/v1/millrace/connect`;
  const response = await ask(address, { method: 'POST', headers: { apikey: secretKey } });
  const body = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  if (response.ok) return body as { project_url: string; secret: string };
  const message = (body.error as { message?: string } | undefined)?.message ?? JSON.stringify(body).slice(0, 300);
  if (response.status === 404) {
    throw new CommandError(`There is no function millrace at ${url}: run \`npx supabase functions deploy\` first.`);
  }
  if (response.status === 401) throw new CommandError(`${url} does not know that secret key: ${message}`);
  throw new CommandError(`${address} answered ${response.status}: ${message}`);
}

/** Asks the database how it is, through the Data API. */
async function readHealth({ url, secretKey }: Connection): Promise<Health> {
  const response = await ask(`${url}/rest/v1/rpc/millrace_health`, {
    method: 'POST',
    headers: { apikey: secretKey, 'content-type': 'application/json' },
    body: '{}',
  });
  if (!response.ok)
    throw new CommandError(`The Data API answered ${response.status}: ${(await response.text()).slice(0, 300)}`);
  const { ok, findings = [] } = (await response.json()) as {
    ok: boolean;
    findings?: { what: string; detail: string }[];
  };
  return { ok, amiss: findings.map(({ what, detail }) => `${what}: ${detail}`) };
}

async function ask(address: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(address, { ...init, signal: AbortSignal.timeout(ANSWER_TIME_MS) });
  } catch (error) {
    const { cause, message } = error as Error & { cause?: { code?: string } };
    throw new CommandError(`${address} cannot be reached (${cause?.code ?? message}): correct the address.`);
  }
}
