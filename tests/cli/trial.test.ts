// A trial of hosted Supabase, as the packed command runs it: the supabase CLI and the hosted project are a stand-in over a local stack.
import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { expectations, type Findings } from '../../cli/trial/expected.ts';
import { deployedFunctions } from '../../local/platform/functions/function-config.ts';
import { type Stack, startStack } from '../../local/platform/stack.ts';
import { packedProgram } from '../support/cli/packed.ts';
import { type StandInCli, standInCli } from '../support/cli/stand-in-cli.ts';
import { until } from '../support/until.ts';

const reference = 'abcdefghijklmnopqrst';
const branchReference = 'bbbbbbbbbbbbbbbbbbbb';
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'trial-'));
const redirect = path.join(folder, 'redirect.mjs');
let stack: Stack;
let branch: Stack;
let cli: StandInCli;
let program: string;
let client: pg.Client;

beforeAll(async () => {
  program = await packedProgram();
  [stack, branch] = (await Promise.all(['hosted', 'branch'].map(emptyProject))) as [Stack, Stack];
  cli = await standInCli(folder, {
    ...{ reference, stack, functionsDir: functionsOf('hosted') },
    branch: { reference: branchReference, stack: branch, functionsDir: functionsOf('branch') },
  });
  client = new pg.Client({ connectionString: stack.dbUrl });
  client.on('error', () => {});
  await client.connect();
  // The addresses of hosted projects lead to the stacks.
  fs.writeFileSync(
    redirect,
    `const real = fetch;
const stacks = ${JSON.stringify({ [reference]: stack.apiUrl, [branchReference]: branch.apiUrl })};
const here = (at) => String(at).replace(/^https:\\/\\/([a-z]{20})\\.supabase\\.co/, (_, of) => stacks[of]);
globalThis.fetch = (at, init) => real(here(at), init);\n`,
  );
});
afterAll(async () => {
  await client.end();
  await cli.stop();
  await Promise.all([stack.stop(), branch.stop()]);
  fs.rmSync(folder, { recursive: true });
});

const functionsOf = (name: string) => path.join(folder, name, 'functions');

/** Starts a project that holds nothing. */
async function emptyProject(name: string): Promise<Stack> {
  const functionsDir = functionsOf(name);
  fs.mkdirSync(functionsDir, { recursive: true });
  fs.writeFileSync(path.join(functionsDir, '..', 'config.toml'), '');
  const empty = await startStack({ services: false, migrations: false, functionsDir, fsync: false });
  // The stack connects itself, which a new hosted project is not.
  await sql(empty, 'delete from vault.secrets');
  return empty;
}

async function sql({ dbUrl }: Stack, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: dbUrl });
  await client.connect();
  await client.query(statement).finally(() => client.end());
}

interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs the command; calls `hear` with each step that it tells. */
function trial(args: string[], hear: (step: string, child: ChildProcess) => void = () => {}): Promise<Ended> {
  const { SUPABASE_SECRET_KEY, ...env } = process.env;
  const child = spawn(process.execPath, ['--import', redirect, program, 'trial', ...args], { cwd: folder, env });
  onTestFinished(() => void child.kill('SIGKILL'));
  const told = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    told.stdout += text;
  });
  createInterface({ input: child.stderr }).on('line', (line) => {
    told.stderr += `${line}\n`;
    if (line.startsWith('trial: ')) hear(line.slice('trial: '.length), child);
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, ...told })));
}

/** The parts that a trial may have left in the project. */
async function leftOvers(): Promise<unknown[]> {
  const { rows } = await client.query(`
    select relname::text as name from pg_class where relname like 'trial\\_%' union all
    select proname::text from pg_proc where proname like any (array['trial\\_%', 'millrace\\_%']) union all
    select nspname::text from pg_namespace where nspname in ('millrace', 'supabase_migrations') union all
    select name from vault.secrets union all
    select jobname from cron.job`);
  return [...rows, ...deployedFunctions(functionsOf('hosted'))];
}

/** Lets the engine's time pass until the query finds something. */
async function passTime(found: string): Promise<void> {
  await client.query(`
    create table if not exists public.test_clock (ahead interval not null);
    insert into public.test_clock select '0' where not exists (select from public.test_clock);
    create or replace function millrace.now() returns timestamptz
    language sql volatile set search_path = '' as 'select clock_timestamp() + c.ahead from public.test_clock c'`);
  await until(
    async () => {
      if ((await client.query(found)).rowCount) return true;
      await client.query(`update public.test_clock set ahead = ahead + '5 seconds'`);
      await client.query('select millrace.sweep()');
      return false;
    },
    120_000,
    200,
  );
}

test('a trial measures every step, reports it beside what the stack says, and leaves nothing', async () => {
  onTestFinished(async () => void (await client.query('drop table if exists public.test_clock')));
  const passing: Promise<void>[] = [];
  const ofLast = `r.entity_id = (select max(id)::text from public.trial_rows)`;
  const { code, stdout, stderr } = await trial(
    [`--remote=${reference}`, '--quick', '--branch', '--yes', '--json'],
    (step) => {
      // A lease, and what the sweep waits for, end by the clock of the test.
      if (step.includes('uses up its CPU')) {
        passing.push(passTime(`select from millrace.attempts a where a.number > 1 and a.started_at is not null`));
      }
      if (step.includes('lost wake-up')) {
        passing.push(passTime(`select from millrace.runs r where r.status = 'completed' and ${ofLast}`));
      }
    },
  );
  expect({ code, stderr }).toMatchObject({ code: 0 });
  await Promise.all(passing);
  await client.query('drop table if exists public.test_clock');
  expect(stderr).toContain('It takes at most 15 minutes and some 1120 invocations of Edge Functions.');
  const { measured, untried } = JSON.parse(stdout) as Findings;
  expect(Object.keys(measured).sort()).toEqual(Object.keys(expectations).sort());
  expect(measured).toMatchObject({ upgrade_failed: 0, pause_begun: 0 });
  // A callback comes to the function millrace, which hands it to the stage's own.
  expect(measured.waiting_calls).toBeGreaterThanOrEqual(2000);
  expect(untried.map(({ what }) => what)).toEqual(['the pause of a whole project']);
  const report = fs.readFileSync(path.join(folder, 'trial-report.md'), 'utf8');
  for (const { what } of Object.values(expectations)) expect(report).toContain(`| ${what} |`);
  expect(report).not.toContain('Not taken away');
  expect(await leftOvers()).toEqual([]);
  expect(cli.calls.slice(-20).map(([group, verb]) => `${group} ${verb}`)).toContain('branches delete');
}, 300_000);

/** Holds a table of the engine until the engine was to be removed twice. */
async function holdTable(): Promise<void> {
  const holder = new pg.Client({ connectionString: stack.dbUrl });
  await holder.connect();
  await holder.query('begin; lock table millrace.pipelines in access share mode');
  const removals = () =>
    cli.calls.filter((call) => call.some((arg) => arg.includes('Millrace stays as it was'))).length;
  const before = removals();
  await until(async () => removals() >= before + 2, 60_000, 50);
  await holder.end();
}

test('a trial that Ctrl-C ends takes everything away, however often it is pressed, and waits for a busy table', async () => {
  let held: Promise<void> | undefined;
  const { code, stderr } = await trial([`--remote=${reference}`, '--quick', '--yes'], (step, child) => {
    if (step === 'deploys its functions' || step === 'takes everything away') child.kill('SIGINT');
    if (step === 'takes everything away') held = holdTable();
  });
  await held;
  expect(stderr).toContain('trial: is taking everything away: this ends by itself');
  expect(stderr).toContain('The trial was interrupted. Everything is taken away again');
  expect(code).toBe(4);
  expect(await leftOvers()).toEqual([]);
});

test('a project that is not empty is refused by what it holds, and nothing is done', async () => {
  await client.query('create table public.orders (id int primary key); create schema shop');
  onTestFinished(async () => void (await client.query('drop table public.orders; drop schema shop')));
  const before = cli.calls.length;
  const { code, stderr } = await trial([`--remote=${reference}`, '--yes']);
  expect(stderr).toContain('It holds the schema shop, the table public.orders: make a new project for it.');
  expect(code).toBe(3);
  expect(cli.calls.slice(before).map(([group, verb]) => `${group} ${verb}`)).toEqual([
    ...['db query', 'db query', 'functions list', 'secrets list', 'db query'],
  ]);
});

test('a trial takes a reference and a yes', async () => {
  expect(await trial(['--remote=staging', '--yes'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--remote is "staging", but must be the reference of an empty project'),
  });
  expect(await trial([`--remote=${reference}`])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Nothing was done, since nobody can be asked here: say --yes.'),
  });
  expect(await trial([`--remote=${reference}`, '--clean'])).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('has no table public.trial_rows, so no trial has left anything: nothing was done.'),
  });
});
