// `millrace dev` of a project that has installed the tarballs, until it is stopped.
import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';

const root = path.join(import.meta.dirname, '..', '..', '..');

export interface Dev {
  dbUrl: string;
  apiUrl: string;
  functionsUrl: string;
  secretKey: string;
  client: pg.Client;
  child: ChildProcess;
  /** The lines that it has printed on the way. */
  told(): string;
  /** Ends it as Ctrl-C does, or by another signal. Resolves to its exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export interface DevOptions {
  /** The folder that holds `supabase`. */
  project: string;
  /** Where the database is kept. */
  data: string;
  env: NodeJS.ProcessEnv;
  /** The program and its first arguments. */
  command: string[];
}

/** Runs `dev --json` until its line comes. Rejects with what it told where it ends before. */
export async function startDev({ project, data, env, command: [program = '', ...args] }: DevOptions): Promise<Dev> {
  const child = spawn(program, [...args, 'dev', '--json', '--data', data], {
    cwd: project,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const line = await Promise.race([
    new Promise<string>((resolve) => createInterface({ input: child.stdout }).once('line', resolve)),
    exited.then(() => Promise.reject(new Error(errors))),
  ]);
  const addresses = JSON.parse(line);
  const client = new pg.Client({ connectionString: addresses.dbUrl });
  // Where a test ends early, the stack goes first.
  client.on('error', () => {});
  await client.connect();
  return {
    ...addresses,
    client,
    child,
    told: () => errors,
    async stop(signal = 'SIGINT') {
      await client.end();
      child.kill(signal);
      return exited;
    },
  };
}

/** Gives a folder what a project has of its own: the supabase CLI, which alone is 135 MB, and Vitest. */
export function linkTools(folder: string): void {
  const modules = path.join(folder, 'node_modules');
  fs.mkdirSync(path.join(modules, '@supabase'), { recursive: true });
  for (const name of ['supabase', 'vitest', `@supabase/cli-${process.platform}-${process.arch}`]) {
    link(path.join(root, 'node_modules', name), path.join(modules, name));
  }
  for (const name of ['supabase', 'vitest']) {
    link(fs.realpathSync(path.join(root, 'node_modules', '.bin', name)), path.join(modules, '.bin', name));
  }
}

function link(target: string, place: string): void {
  fs.rmSync(place, { force: true });
  fs.symlinkSync(target, place);
}
