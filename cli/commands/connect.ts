// millrace connect: tells a project's database where its functions are, and with what to wake them.
import { CommandError } from '../project/command-error.ts';

const ANSWER_TIME_MS = 15_000;

/** Where a project answers, and a secret key of it. */
export interface Connection {
  url: string;
  secretKey: string;
}

/** Whether the database is well by now; `amiss` has what it says of itself otherwise. */
export interface Health {
  ok: boolean;
  amiss: string[];
}

/** Calls the project's function. Resolves to what it answered. Throws a CommandError that says what stands in the way. */
export async function connect({ url, secretKey }: Connection): Promise<{ project_url: string; secret: string }> {
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
export async function readHealth({ url, secretKey }: Connection): Promise<Health> {
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
