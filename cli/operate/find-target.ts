// Which project a command asks, and with what: the stack that runs beside it, the one of the environment, or a hosted one.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { findRunningStack, targetOf } from '../../local/platform/running-stack.ts';
import { CommandError } from '../command-error.ts';
import { branchReference, revealSecretKey } from '../project/ask-supabase.ts';
import { findProject } from '../project/find-project.ts';

export interface Target {
  url: string;
  /** The headers of requests to the Data API, with the key. */
  headers: Record<string, string>;
  /** The operator for whom the command acts with a secret key. */
  operator: string;
}

/** Returns the name of this machine's user, for the journal. */
export function nameOfUser(): string {
  try {
    return os.userInfo().username;
  } catch {
    // In a container the user may have a number and no name.
    return process.env.USER || 'cli';
  }
}

interface TargetOptions {
  /** A reference, branch or URL; '' is the project that the folder is linked to, undefined SUPABASE_URL or else the local stack. */
  remote?: string;
  workdir: string;
  /** Whether the supabase CLI is to tell the secret key of a remote project, where SUPABASE_SECRET_KEY does not. */
  revealsKey?: boolean;
}

/** Finds the project. Throws a CommandError that says what is missing. */
export async function findTarget({ remote, workdir, revealsKey = false }: TargetOptions): Promise<Target> {
  const operator = nameOfUser();
  if (remote !== undefined) {
    const url = await remoteUrl(remote, workdir);
    const asksCli = revealsKey && !isUrl(remote) && !process.env.SUPABASE_SECRET_KEY;
    const headers = asksCli ? { apikey: await revealSecretKey(remote, findProject(workdir).root) } : headersOf(url);
    return { url, headers, operator };
  }
  const { SUPABASE_URL: given } = process.env;
  if (given) return { url: safeUrl(given), headers: headersOf(safeUrl(given)), operator };
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

const isUrl = (remote: string) => /[:/.]/.test(remote);

/** Where a remote project is. As the supabase CLI reads it, 20 lower-case letters are a reference, and other words a branch. */
async function remoteUrl(remote: string, workdir: string): Promise<string> {
  if (isUrl(remote)) return safeUrl(remote);
  if (isReference(remote)) return urlOf(remote);
  const linked = linkedReference(workdir);
  return urlOf(remote ? await branchReference(remote, findProject(workdir).root) : linked);
}

const isReference = (text: string) => /^[a-z]{20}$/.test(text);

/** Returns the address of a hosted project. Throws for any other text, which would become the host that gets the secret key. */
function urlOf(reference: string): string {
  if (isReference(reference)) return `https://${reference}.supabase.co`;
  throw new CommandError(
    'The branch has no reference of a project, which has 20 lower-case letters: say --remote=REF.',
    2,
  );
}

function linkedReference(workdir: string): string {
  const { root } = findProject(workdir);
  const file = path.join(root, 'supabase', '.temp', 'project-ref');
  if (!fs.existsSync(file)) {
    throw new CommandError('This folder is linked to no project: say --remote=REF, or run `npx supabase link`.', 2);
  }
  const reference = fs.readFileSync(file, 'utf8').trim();
  // A checkout may hold a file that somebody else wrote: `evil.example/` would become the host that gets the secret key.
  if (!isReference(reference)) {
    throw new CommandError(
      'supabase/.temp/project-ref holds no reference of a project, which has 20 lower-case letters: ' +
        'run `npx supabase link`, or say --remote=REF.',
      2,
    );
  }
  // `supabase link` writes the file beside a .gitignore. A file in git names the project of its author, who would get the key.
  if (spawnSync('git', ['ls-files', '--error-unmatch', file], { cwd: root }).status === 0) {
    throw new CommandError(
      `supabase/.temp/project-ref is in git, so its author chose the project ${reference} that gets your key: ` +
        'say --remote=REF, or take the file out of git and run `npx supabase link`.',
      2,
    );
  }
  return reference;
}

const own = /^(localhost|127\.0\.0\.1|\[::1\])$/;

const isOnThisMachine = (url: string) => own.test(new URL(url).hostname);

/** Returns the options by which a command of the supabase CLI reaches the database at `url`. */
export function targetAt(url: string, root: string, remote: string | undefined): string {
  const stack = findRunningStack(root);
  if (stack?.apiUrl === url) return targetOf(stack);
  // Without --remote the supabase CLI asks what `supabase start` runs.
  if (isOnThisMachine(url)) return '';
  return remote ? `--remote=${remote}` : '--remote';
}

/** Returns the address without the slash at its end. A secret key goes out in the clear to this machine alone. */
function safeUrl(given: string): string {
  const url = given.replace(/\/+$/, '');
  const { protocol, hostname } = URL.canParse(url) ? new URL(url) : { protocol: '', hostname: '' };
  if (protocol === 'https:' || (protocol === 'http:' && own.test(hostname))) return url;
  throw new CommandError(
    `${url} is no address of a project: write its reference or branch, or a URL that begins with https://.`,
    2,
  );
}

/** Returns a secret key, or the token of a user whom millrace.operators lists. */
function headersOf(url: string): Record<string, string> {
  const { SUPABASE_SECRET_KEY, SUPABASE_PUBLISHABLE_KEY, MILLRACE_USER_TOKEN } = process.env;
  if (MILLRACE_USER_TOKEN && SUPABASE_PUBLISHABLE_KEY) {
    return { apikey: SUPABASE_PUBLISHABLE_KEY, authorization: `Bearer ${MILLRACE_USER_TOKEN}` };
  }
  if (SUPABASE_SECRET_KEY) return { apikey: SUPABASE_SECRET_KEY };
  const logger = isOnThisMachine(url)
    ? '`npx supabase status` tells that of `npx supabase start`, and `npx millrace dev` prints its own'
    : 'npx supabase projects api-keys --reveal';
  throw new CommandError(`SUPABASE_SECRET_KEY is not set: set it to a secret key of ${url} (${logger}).`, 2);
}
