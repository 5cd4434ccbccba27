// Asks the supabase CLI, as the user who is logged in to Supabase, for a project's secret key and the references of its
// branches, and runs statements by it.
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { addCommand } from '../../local/platform/add-command.ts';
import { CommandError } from '../command-error.ts';

interface ApiKey {
  type?: string | null;
  name: string;
  api_key?: string | null;
}

/** A secret key of a project; `remote` is its reference or branch, '' the one that the folder `root` is linked to. Throws a CommandError. */
export async function revealSecretKey(remote: string, root: string): Promise<string> {
  const args = ['projects', 'api-keys', '--reveal', ...(remote ? [`--remote=${remote}`] : [])];
  const keys = JSON.parse(await ask(root, args, 'SUPABASE_SECRET_KEY is not set')) as ApiKey[];
  // An older project has the service_role key alone.
  const key = keys.find(({ type }) => type === 'secret') ?? keys.find(({ name }) => name === 'service_role');
  if (key?.api_key) return key.api_key;
  throw new CommandError('The project has no secret key: make one in the dashboard, or set SUPABASE_SECRET_KEY.');
}

/** The reference of a preview branch of the project that `root` is linked to. Throws a CommandError that names those there are. */
export async function branchReference(name: string, root: string): Promise<string> {
  const told = await ask(root, ['branches', 'list'], `${name} is a branch`);
  const branches = JSON.parse(told) as { name: string; project_ref: string }[];
  const branch = branches.find((one) => one.name === name);
  if (branch) return branch.project_ref;
  const there = branches.length > 0 ? `name one of ${branches.map((one) => one.name).join(', ')}` : 'it has none';
  throw new CommandError(
    `The linked project has no branch ${name}: ${there}, or write a reference, which has 20 lower-case letters.`,
    2,
  );
}

/** Runs a statement in the database to which `target` leads: options as a shell takes them. Throws a CommandError that says why not. */
export async function querySupabase(root: string, target: string, sql: string): Promise<void> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-'));
  try {
    const file = path.join(folder, 'statement.sql');
    fs.writeFileSync(file, sql);
    const options = target.split(' ').filter((option) => option !== '' && option !== '--yes');
    const given = options.map((option) => option.replaceAll("'", ''));
    await ask(root, ['db', 'query', '--yes', ...given, '--file', file], 'The database lacks rows of the engine');
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs the CLI in `root`. Resolves to what it prints; throws a CommandError that says what it is asked for: `because`. */
async function ask(root: string, args: string[], because: string): Promise<string> {
  const all = [...args, '--output', 'json', '--workdir', root];
  const { stdout } = await promisify(execFile)(supabaseIn(root), all).catch(
    (error: NodeJS.ErrnoException & { stderr?: string }) => {
      if (error.code === 'ENOENT') {
        throw new CommandError(
          `${because}, and the supabase CLI, which would tell it, is not installed: run \`${addCommand(root)} supabase\`.`,
        );
      }
      const command = args
        .slice(
          0,
          args.findIndex((arg) => /^--(remote|yes)/.test(arg)),
        )
        .join(' ');
      throw new CommandError(
        `${because}, and \`supabase ${command}\` failed: ${(error.stderr || error.message).trim()}`,
      );
    },
  );
  return stdout;
}

/** Returns the CLI that the project installed, or the one on the PATH. */
export function supabaseIn(root: string): string {
  for (let folder = path.resolve(root); ; folder = path.dirname(folder)) {
    const bin = path.join(folder, 'node_modules', '.bin', 'supabase');
    if (fs.existsSync(bin)) return bin;
    if (path.dirname(folder) === folder) return 'supabase';
  }
}
