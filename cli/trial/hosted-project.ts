// The hosted project of a trial, reached by the supabase CLI as the user who is logged in there.
import { spawn } from 'node:child_process';
import { CommandError } from '../command-error.ts';
import { supabaseIn } from '../project/ask-supabase.ts';

/** The operations of a trial on a project, besides requests to its Data API and functions. */
export interface HostedProject {
  reference: string;
  /** Runs SQL as postgres. Resolves to the rows of a query. */
  query<Row>(sql: string): Promise<Row[]>;
  functions(): Promise<string[]>;
  /** The names of the settings that its owner gave the functions. */
  secrets(): Promise<string[]>;
  /** Applies the migrations of the folder that the project lacks. */
  push(root: string): Promise<void>;
  /** Deploys the functions of the folder, or this one. */
  deploy(root: string, name?: string): Promise<void>;
  deleteFunction(name: string): Promise<void>;
  setSecrets(secrets: Record<string, string>): Promise<void>;
  unsetSecrets(names: string[]): Promise<void>;
  /** Makes a preview branch. Resolves to its reference. */
  createBranch(name: string): Promise<string>;
  branches(): Promise<string[]>;
  deleteBranch(name: string): Promise<void>;
}

/** How the CLI is run: from the folder whose CLI it is, and no more once `signal` aborts. */
export interface Running {
  from: string;
  signal?: AbortSignal;
}

/** Returns the project of this reference. Each call throws a CommandError with what the CLI said where it fails. */
export function hostedProject(reference: string, running: Running): HostedProject {
  const run = (...args: string[]) => runSupabase([...args, `--remote=${reference}`, '--yes'], running);
  const list = async <Row extends { name: string }>(what: string) =>
    JSON.parse((await run(what, 'list', '--output', 'json')) || '[]') as Row[];
  const names = async (what: string) => (await list(what)).map(({ name }) => name);
  return {
    reference,
    query: async <Row>(sql: string) => rowsIn<Row>(await run('db', 'query', sql, '--output-format', 'json')),
    functions: () => names('functions'),
    secrets: async () => (await names('secrets')).filter((name) => !name.startsWith('SUPABASE_')),
    push: async (root) => void (await run('db', 'push', '--workdir', root)),
    deploy: async (root, name) =>
      void (await run('functions', 'deploy', ...(name ? [name] : []), '--use-api', '--workdir', root)),
    deleteFunction: async (name) => void (await run('functions', 'delete', name)),
    setSecrets: async (secrets) =>
      void (await run('secrets', 'set', ...Object.entries(secrets).map(([name, value]) => `${name}=${value}`))),
    unsetSecrets: async (names) => void (await run('secrets', 'unset', ...names)),
    createBranch: async (name) => {
      // The output of this call begins with a sentence, so that the list tells the reference.
      await run('branches', 'create', name);
      const made = (await list<{ name: string; project_ref: string }>('branches')).find((one) => one.name === name);
      if (made) return made.project_ref;
      throw new CommandError(
        `\`supabase branches list\` does not name the branch ${name} that was made. Run the trial again, or delete the branch by hand.`,
        4,
      );
    },
    branches: () => names('branches'),
    deleteBranch: async (name) => void (await run('branches', 'delete', name)),
  };
}

/** Returns the rows in what `db query` prints: a list, or an object that has it. */
function rowsIn<Row>(told: string): Row[] {
  const said = JSON.parse(told || '[]') as Row[] | { rows?: Row[] };
  return Array.isArray(said) ? said : (said.rows ?? []);
}

/**
 * Runs the CLI, out of reach of the terminal's Ctrl-C: a push that is cut off may still be carried out, after all was taken away.
 * Resolves to its standard output.
 */
function runSupabase(args: string[], { from, signal }: Running): Promise<string> {
  signal?.throwIfAborted();
  const child = spawn(supabaseIn(from), args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const told = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      told[stream] += text;
    });
  }
  return new Promise<string>((resolve, reject) => {
    child.once('error', () => reject(new CommandError('The supabase CLI is not installed: run `npm i -D supabase`.')));
    child.once('close', (code) => {
      if (code === 0) return resolve(told.stdout.trim());
      const command = `supabase ${args.slice(0, 2).join(' ')}`;
      reject(new CommandError(`\`${command}\` failed: ${lastLines(told)}`, 4));
    });
  });
}

const lastLines = ({ stdout, stderr }: { stdout: string; stderr: string }) =>
  (stderr.trim() || stdout.trim()).split('\n').slice(-5).join('\n');
