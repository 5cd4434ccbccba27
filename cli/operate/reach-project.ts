// Which project a command asks, and with what: the stack that runs beside it, the one of the environment, or a hosted one.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { findRunningStack } from '../../local/platform/running-stack.ts';
import { CommandError } from '../project/command-error.ts';
import { findProject } from '../project/find-project.ts';

export interface Reach {
  url: string;
  /** What the Data API is asked with. */
  headers: Record<string, string>;
  /** In whose name it acts, where a secret key asks. */
  operator: string;
}

/** Who sits here, for the journal. */
export function nameOfUser(): string {
  try {
    return os.userInfo().username;
  } catch {
    // A container may know its user by number alone.
    return process.env.USER || 'cli';
  }
}

/**
 * Finds the project: `remote` is a project's reference or URL, '' for the one that the folder is linked to, undefined for
 * SUPABASE_URL or else the local stack. Throws a CommandError that says what is missing.
 */
export function reachProject({ remote, workdir }: { remote?: string; workdir: string }): Reach {
  const url = remote === undefined ? process.env.SUPABASE_URL : remoteUrl(remote || linkedReference(workdir));
  const operator = nameOfUser();
  if (url) return { url: requireSafe(url.replace(/\/+$/, '')), headers: headersOf(url), operator };
  const stack = findRunningStack(findProject(workdir).root);
  if (!stack) {
    throw new CommandError(
      'No local stack runs over this project: start one with `npx millrace dev`, set SUPABASE_URL and SUPABASE_SECRET_KEY, ' +
        'or say --remote[=REF].',
      4,
    );
  }
  return { url: stack.apiUrl, headers: { apikey: stack.secretKey }, operator };
}

const remoteUrl = (remote: string) => (/^[a-z0-9]+$/.test(remote) ? `https://${remote}.supabase.co` : remote);

function linkedReference(workdir: string): string {
  const file = path.join(findProject(workdir).root, 'supabase', '.temp', 'project-ref');
  if (!fs.existsSync(file)) {
    throw new CommandError('This folder is linked to no project: say --remote=REF, or run `npx supabase link`.', 2);
  }
  return fs.readFileSync(file, 'utf8').trim();
}

/** A secret key goes out in the clear to this machine alone. */
function requireSafe(url: string): string {
  const { protocol, hostname } = URL.canParse(url) ? new URL(url) : { protocol: '', hostname: '' };
  if (protocol === 'https:' || (protocol === 'http:' && /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname)))
    return url;
  throw new CommandError(
    `${url} is no address of a project: write its reference, or a URL that begins with https://.`,
    2,
  );
}

/** A secret key, or the token of a user whom millrace.operators lists. */
function headersOf(url: string): Record<string, string> {
  const { SUPABASE_SECRET_KEY, SUPABASE_PUBLISHABLE_KEY, MILLRACE_USER_TOKEN } = process.env;
  if (MILLRACE_USER_TOKEN && SUPABASE_PUBLISHABLE_KEY) {
    return { apikey: SUPABASE_PUBLISHABLE_KEY, authorization: `Bearer ${MILLRACE_USER_TOKEN}` };
  }
  if (SUPABASE_SECRET_KEY) return { apikey: SUPABASE_SECRET_KEY };
  throw new CommandError(
    `SUPABASE_SECRET_KEY is not set: set it to a secret key of ${url} (npx supabase projects api-keys --reveal).`,
    2,
  );
}
