// A stand-in of the supabase CLI over a local stack, for commands that ask a hosted project by it. Each call is taken down.
import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import pg from 'pg';
import { deployedFunctions } from '../../../local/platform/functions/function-config.ts';
import type { Stack } from '../../../local/platform/stack.ts';

export interface StandInCli {
  /** The arguments of each call, but for `--yes` and `--remote`. */
  calls: string[][];
  /** The folder in which `node_modules/.bin/supabase` is the stand-in. */
  stop(): Promise<void>;
}

export interface StandIn {
  reference: string;
  stack: Stack;
  /** The folder of functions that the stack runs, which a deployment fills. */
  functionsDir: string;
  /** The project that is its preview branch from `branches create` to `branches delete`. */
  branch?: StandIn;
}

/** A project as it is now. */
interface Project extends StandIn {
  settings: Map<string, string>;
  /** The name of its branch; undefined where it has none. */
  branchName?: string;
}

/** Puts the stand-in where `folder`'s own CLI would be. */
export async function standInCli(folder: string, standIn: StandIn): Promise<StandInCli> {
  const calls: string[][] = [];
  const projects = [standIn, ...(standIn.branch ? [standIn.branch] : [])].map(
    (one): Project => ({ ...one, settings: new Map() }),
  );
  const server = http.createServer(async (request, response) => {
    const given: string[] = JSON.parse(await text(request));
    const args = given.filter((arg) => arg !== '--yes' && !arg.startsWith('--remote='));
    calls.push(args);
    const project = projects.find(({ reference }) => given.includes(`--remote=${reference}`));
    const said = await (project ? answer(args, project) : Promise.reject(new Error('There is no such project.'))).then(
      (stdout) => ({ stdout: JSON.stringify(stdout ?? null) }),
      (error: Error) => ({ stderr: error.message }),
    );
    response.end(JSON.stringify(said));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const bin = path.join(folder, 'node_modules', '.bin');
  fs.mkdirSync(bin, { recursive: true });
  fs.writeFileSync(path.join(bin, 'supabase'), program(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), {
    mode: 0o755,
  });
  return { calls, stop: () => new Promise((resolve) => server.close(() => resolve())) };
}

const program = (url: string) => `#!/usr/bin/env node
const answer = await fetch(${JSON.stringify(url)}, { method: 'POST', body: JSON.stringify(process.argv.slice(2)) });
const { stdout, stderr } = await answer.json();
if (stderr) console.error(stderr);
else console.log(stdout);
process.exitCode = stderr ? 1 : 0;
`;

async function answer(args: string[], project: Project): Promise<unknown> {
  const { stack, functionsDir, reference, settings, branch, branchName } = project;
  const [group, verb, first = ''] = args;
  const workdir = args[args.indexOf('--workdir') + 1] ?? '';
  switch (`${group} ${verb}`) {
    case 'db query':
      return rowsOf(stack, first);
    case 'db push':
      return push(stack, path.join(workdir, 'supabase', 'migrations'));
    case 'functions list':
      return deployedFunctions(functionsDir).map((name) => ({ name }));
    case 'functions deploy':
      return deploy(path.join(workdir, 'supabase'), functionsDir);
    case 'functions delete':
      return fs.rmSync(path.join(functionsDir, first), { recursive: true });
    case 'projects api-keys':
      return [{ name: 'default', type: 'secret', api_key: stack.secretKey }];
    case 'secrets list':
      return [...settings.keys(), 'SUPABASE_URL'].map((name) => ({ name }));
    case 'secrets set':
      for (const setting of args.slice(2)) {
        const [name = ''] = setting.split('=', 1);
        // A command that leads to the hosted project leads to the stack.
        settings.set(name, setting.slice(name.length + 1).replace(`https://${reference}.supabase.co`, stack.apiUrl));
      }
      return takeSettings(stack, settings);
    case 'secrets unset':
      for (const name of args.slice(2)) settings.delete(name);
      return takeSettings(stack, settings);
    case 'branches create':
      project.branchName = first;
      return branch && copySchema(stack, branch.stack);
    case 'branches list':
      return branchName ? [{ name: branchName, project_ref: branch?.reference }] : [];
    case 'branches delete':
      project.branchName = undefined;
      return;
    default:
      throw new Error(`The stand-in has no ${args.join(' ')}.`);
  }
}

/** Gives the functions their settings. The stack then connects its database, which the platform does not. */
async function takeSettings(stack: Stack, settings: Map<string, string>): Promise<void> {
  await stack.takeSettings(Object.fromEntries(settings));
  await rowsOf(stack, 'delete from vault.secrets');
}

async function withClient<Result>(stack: Stack, use: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({ connectionString: stack.dbUrl });
  await client.connect();
  return use(client).finally(() => client.end());
}

function rowsOf(stack: Stack, sql: string): Promise<unknown[]> {
  return withClient(stack, async (client) => {
    // As a prepared statement, so that it refuses several at once as the CLI does.
    const { rows } = await client.query({ text: sql, values: [], queryMode: 'extended' } as pg.QueryConfig);
    return rows;
  });
}

/** Gives a branch the project's schema and the versions of its migrations, and no rows, as hosted does where Git makes no branch. */
async function copySchema(from: Stack, to: Stack): Promise<void> {
  const history = 'select version, name, statements from supabase_migrations.schema_migrations order by version';
  const migrations = (await rowsOf(from, history)) as { version: string; name: string; statements: string[] }[];
  await withClient(to, async (client) => {
    await client.query(historySql);
    for (const { version, name, statements } of migrations) {
      for (const statement of statements) await client.query(statement);
      await client.query('insert into supabase_migrations.schema_migrations (version, name) values ($1, $2)', [
        version,
        name,
      ]);
    }
    await client.query(`
      truncate millrace.pipelines, millrace.limits, millrace.settings, millrace.releases cascade;
      select cron.unschedule(jobname) from cron.job`);
  });
}

const historySql = `create schema if not exists supabase_migrations;
  create table if not exists supabase_migrations.schema_migrations (version text primary key, statements text[], name text)`;

/** Applies what the history lacks, a migration in a transaction. */
function push(stack: Stack, folder: string): Promise<void> {
  return withClient(stack, async (client) => {
    await client.query(historySql);
    for (const file of fs.readdirSync(folder).sort()) {
      const [, version, name] = /^(\d+)_(.*)\.sql$/.exec(file) ?? [];
      const noted =
        'insert into supabase_migrations.schema_migrations (version, name, statements) values ($1, $2, $3) on conflict do nothing';
      const statement = fs.readFileSync(path.join(folder, file), 'utf8');
      await client.query('begin');
      const { rowCount } = await client.query(noted, [version, name, [statement]]);
      if (rowCount) await client.query(statement);
      await client.query('commit');
    }
  });
}

function deploy(from: string, functionsDir: string): void {
  fs.cpSync(path.join(from, 'functions'), functionsDir, { recursive: true });
  fs.copyFileSync(path.join(from, 'config.toml'), path.join(functionsDir, '..', 'config.toml'));
}
