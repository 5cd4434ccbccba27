// A project from init to its end: rows on their way through an upgrade, what doctor and connect say of faults, and out again.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import type pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { deployedFunctions } from '../../local/platform/functions/function-config.ts';
import { type Dev, linkTools, startDev } from '../support/cli/dev-command.ts';
import { releaseFormer, releaseNext } from '../support/cli/next-release.ts';
import { PackedProject } from '../support/cli/packed-project.ts';
import { makeNextLevel, type NextLevel, snapshot } from '../support/engine/releases.ts';

const root = path.join(import.meta.dirname, '..', '..');
const packed = new PackedProject();
const { here, hereWith, filesOf } = packed;

test('from init to a completed row, through an upgrade, and out again', async () => {
  const table = (
    name: string,
  ) => `create table public.${name} (id bigint generated always as identity primary key, body text);
    alter table public.${name} enable row level security;
    revoke all on public.${name} from anon, authenticated, service_role;
    grant select, insert, update, delete on public.${name} to service_role;\n`;
  const migrations = path.join(packed.place, 'supabase', 'migrations');
  fs.mkdirSync(migrations);
  fs.writeFileSync(path.join(migrations, '20260101000000_tables.sql'), table('tickets') + table('calls'));
  linkTools(packed.place);
  const dev = await start();
  onTestFinished(() => void dev.child.kill());
  const schema = await snapshot(dev.client);
  const next = await makeNextLevel();
  releaseFormer(packed.place, next);
  // The file that tells that it runs goes with it.
  const { 'supabase/.temp/millrace-stack.json': told, ...before } = filesOf();
  expect(told).toContain(dev.apiUrl);
  expect(await here('init')).toMatchObject({ status: 0, stdout: expect.stringContaining('Next: npx millrace add') });
  expect((await here('init')).stdout).toBe('Nothing to do: all of it is there.\n');
  expect((await here('add', 'tickets', 'triage', 'reply')).status).toBe(0);
  expect((await here('add', 'tickets', 'close_it')).status).toBe(0);
  expect((await here('add', 'tickets', 'triage')).stderr).toContain(
    'supabase/functions/tickets-triage is there already',
  );
  expect((await here('add', 'Tickets', 'triage')).stderr).toContain('"Tickets" cannot be a name');
  for (const option of ['--table=public.orders', '--key=no']) {
    expect((await here('add', 'tickets', 'send', option)).stderr).toContain('leave out --table and --key');
  }
  expect((await here('add', 'calls', 'transcribe', '--external')).status).toBe(0);
  expect(await here('sync', '--check')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('Run `npx millrace sync`'),
  });
  expect(await here('sync')).toMatchObject({ status: 0, stdout: expect.stringContaining('_pipeline_tickets.sql') });
  expect((await here('sync', '--check')).status).toBe(0);
  expect(await here('check')).toMatchObject({ status: 0, stderr: '' });

  const vitest = path.join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const config = `--config=${path.join(packed.place, 'none.config.mjs')}`;
  fs.writeFileSync(path.join(packed.place, 'none.config.mjs'), 'export default {};\n');
  const tested = spawnSync(
    process.execPath,
    [vitest, 'run', '--root', packed.place, config, '--isolate=false', '--maxWorkers=1'],
    {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, NO_COLOR: '1' },
    },
  );
  expect(tested.stdout, tested.stderr).toMatch(/Tests\s+4 passed/);
  fs.rmSync(path.join(packed.place, 'none.config.mjs'));

  const runtime = path.join(packed.place, 'supabase', 'functions', '_millrace', 'mod.ts');
  const shipped = fs.readFileSync(runtime, 'utf8');
  expect((await here('upgrade')).stdout).toBe('Nothing to do: all of it is there.\n');
  fs.writeFileSync(runtime, `${shipped}// mine\n`);
  const refused = await here('upgrade');
  expect(refused.status).toBe(1);
  expect(refused.stderr).toContain('+// mine');
  expect(refused.stderr).toContain('run this again with --force');
  expect((await here('upgrade', '--force')).status).toBe(0);
  expect(fs.readFileSync(runtime, 'utf8')).toBe(shipped);

  await expectUpgraded(dev, next, schema);
  fs.appendFileSync(runtime, '// mine\n');
  const left = await here('uninstall', '--columns', '--cancel');
  expect(left.stdout).toContain(
    'remove what stays, since you have edited it: supabase/functions/_millrace/mod.ts; then',
  );
  fs.rmSync(path.join(packed.place, 'supabase', 'functions', '_millrace'), { recursive: true });
  const after = filesOf();
  const own = /^supabase\/(migrations\/|functions\/_pipelines\/|functions\/(tickets|calls)-)|^tests\//;
  expect(
    Object.keys(after)
      .filter((file) => !own.test(file))
      .sort(),
  ).toEqual(
    Object.keys(before)
      .filter((file) => !own.test(file))
      .sort(),
  );
  expect(Object.keys(after).filter((file) => file.endsWith('_uninstall_millrace.sql'))).toHaveLength(1);
  for (const [file, text] of Object.entries(before)) {
    if (file !== 'supabase/config.toml') expect(after[file]).toBe(text);
  }
  expect(after['supabase/config.toml']).toContain(before['supabase/config.toml']?.trimEnd());
}, 500_000);

/** Runs `millrace dev` in the project until the stack is up. */
function start(): Promise<Dev> {
  const command = [packed.bin];
  const { FORCE_COLOR, ...env } = process.env;
  return startDev({
    project: packed.place,
    data: path.join(packed.folder, 'data'),
    env: { ...env, NO_COLOR: '1' },
    command,
  });
}

/** Has the project deployed, and upgrades it to the next level while a ticket is on its way; then what it adds goes. */
async function expectUpgraded(dev: Dev, next: NextLevel, schema: string[]): Promise<void> {
  const supabase = path.join(packed.place, 'supabase');
  const migrations = path.join(supabase, 'migrations');
  const { client } = dev;
  try {
    execFileSync('sh', ['-c', pushTo(dev)], { cwd: packed.place, stdio: 'ignore' });
    // Whether its sweep has run by now or not; the Data API takes a moment to know what was pushed.
    await expect.poll(() => ask(dev, 'status'), { timeout: 60_000 }).toContain(' sweep ');
    // All of these arrive at Supabase, as tests/cli/functions-deploy.test.ts has it.
    expect(deployedFunctions(path.join(supabase, 'functions'))).toEqual([
      'calls-transcribe',
      'greet',
      'millrace',
      'tickets-close-it',
      'tickets-reply',
      'tickets-triage',
    ]);
    await client.query(`select millrace.pause('tickets')`);
    await client.query(`insert into public.tickets (triage_status) values ('queued')`);

    releaseNext(packed.place, next);
    // It has the package by a tarball, so that npm need not know any other release.
    expect((await here('sync')).stderr).toContain(
      'run `npx millrace upgrade`, or run `npm i -D ./millrace-0.1.0.tgz`, whose',
    );
    expect((await here('upgrade', '--to', '0.9.0')).stderr).toContain(
      'run `npm i -D ./millrace-0.9.0.tgz`, whose tarball `npm ci && npm pack` writes in a clone of that release, then',
    );
    expect(await here('upgrade')).toMatchObject({ status: 0, stdout: expect.stringContaining('Next: look at it') });
    const step = fs.readdirSync(migrations).at(-1) ?? '';
    expect(step).toMatch(new RegExp(`^\\d{14}_millrace_level_${next.level}\\.sql$`));
    expect(fs.readFileSync(path.join(migrations, step), 'utf8')).toBe(next.upgrade);
    expect(fs.readFileSync(path.join(supabase, 'functions', '_millrace', 'mod.ts'), 'utf8')).toContain('next release');
    expect((await here('upgrade')).stdout).toBe('Nothing to do: all of it is there.\n');

    expect(await ask(dev, 'doctor')).toContain(
      `The database has Millrace 0.1.0 at level 1, and this folder 99.0.0 at level ${next.level}: run \`${pushTo(dev)}\`.`,
    );
    await client.query(next.upgrade);
    await client.query(`select millrace.unpause('tickets')`);
    await expect
      .poll(async () => (await client.query('select close_it_status from public.tickets')).rows[0], { timeout: 30_000 })
      .toEqual({ close_it_status: 'completed' });
    expect((await client.query('select what from millrace.doctor() where not ok')).rows).toEqual([]);
    expect(await ask(dev, 'connect')).toBe(
      `The database wakes functions at ${dev.apiUrl}, with MILLRACE_WAKE_SECRET; a wake-up was answered.\n` +
        `Messages about alerts link to ${dev.apiUrl}/operate/.\ndoctor() finds all well.\n`,
    );

    await expectDiagnosed(dev, client);
    await client.query(`select millrace.pause('tickets')`);
    await client.query(`insert into public.tickets (triage_status) values ('queued')`);
    const removed = await here('uninstall', '--columns', '--cancel', '--dry-run');
    expect(removed.stdout).toContain('+select millrace.cancel(r.id)');
    await expectRemoved(client, schema);
  } finally {
    await dev.stop();
  }
}

/** The answer of a command that asks the stack. */
async function ask(dev: Dev, line: string, given: Record<string, string> = {}): Promise<string> {
  const asked = { SUPABASE_URL: dev.apiUrl, SUPABASE_SECRET_KEY: dev.secretKey, ...given };
  const { stdout, stderr } = await hereWith(asked, ...line.split(' '));
  return `${stdout}${stderr}`;
}

/** The texts that `doctor` and `connect` say while something is amiss, and where they are asked wrongly. */
async function expectDiagnosed(dev: Dev, client: pg.Client): Promise<void> {
  const asked = (line: string, given = {}) => ask(dev, line, given);
  expect(await asked('doctor')).toBe('All is well.\n');
  await expectAhead(dev, asked);
  await client.query(`delete from millrace.settings where name = 'journal_days'`);
  expect(await asked('doctor')).toBe(
    '✗ the engine has its own rows\n    setting journal_days missing: npx millrace connect writes it\n',
  );
  // As in a branch made in the dashboard, which has the schema without rows.
  await client.query('truncate millrace.pipelines cascade');
  const without = await asked('doctor');
  expect(without).toMatch(/setting journal_days, .*pipeline tickets\b.* missing: npx millrace connect writes it\n/);
  expect(without).not.toContain('does not have pipeline tickets');
  await client.query(`delete from vault.secrets where name = 'millrace_project_url'`);
  expect(await asked('doctor')).toContain('✗ project_url is set\n    missing: npx millrace connect writes it\n');
  const connected = await asked('connect --page=https://ops.test/operate/');
  expect(connected).toContain('Messages about alerts link to https://ops.test/operate/.\n');
  expect(connected).toMatch(
    /Wrote the settings and cron jobs that were missing, and the definitions of .*\btickets\b.*\.\n/,
  );
  expect(connected).not.toContain('the engine has its own rows');
  expect(await asked('connect --page=ops.test')).toContain('setting page_url is');
  const wrongKey = { SUPABASE_SECRET_KEY: 'sb_secret_of_another_project' };
  expect(await asked('doctor', wrongKey)).toContain('does not know that secret key');
  expect(await asked('connect', wrongKey)).toContain('does not know that secret key');
  expect(await asked('connect', { SUPABASE_URL: 'http://127.0.0.1:9' })).toContain('cannot be reached');

  const deployed = path.join(packed.place, 'supabase', 'functions', 'millrace');
  fs.renameSync(deployed, `${deployed}-away`);
  expect(await asked('connect')).toContain('There is no function millrace at');
  fs.renameSync(`${deployed}-away`, deployed);
  // As where the database's network leads elsewhere than that of the functions.
  const elsewhere = (url: string) =>
    client.query(`create or replace function public.elsewhere() returns trigger language plpgsql as
      $$ begin new.url := '${url}'; return new; end $$`);
  await elsewhere('http://127.0.0.1:9/');
  await client.query(`create trigger elsewhere before insert on net.http_request_queue
    for each row execute function public.elsewhere()`);
  expect(await asked('connect')).toMatch(/but cannot reach that address \(.+\)\. It is the SUPABASE_URL/);
  await elsewhere(`${dev.apiUrl}/functions/v1/none`);
  expect(await asked('connect')).toContain('answered 404: deploy it: npx supabase functions deploy millrace.');
  await client.query('drop function public.elsewhere() cascade');
  expect(await asked('connect')).toContain('a wake-up was answered.');

  const manifest = path.join(packed.place, 'supabase', 'functions', '_millrace', 'manifest.json');
  const ours = fs.readFileSync(manifest, 'utf8');
  fs.writeFileSync(manifest, ours.replace('"99.0.0"', '"0.1.0"').replace(/"level": \d+/, '"level": 1'));
  expect(await asked('doctor')).toMatch(
    /this command is of 99\.0\.0: .*\n.*this folder 0\.1\.0 at level 1: run `npm i -D \.\/millrace-99\.0\.0\.tgz`, whose .*, then `npx millrace upgrade`/,
  );
  fs.writeFileSync(manifest, ours);
}

/** The change that brings a migration into a stack that runs, which is neither started anew nor the linked project. */
const pushTo = ({ dbUrl }: Dev) => `npx supabase db push --yes --remote='${dbUrl}?sslmode=disable'`;

/** The lines of `doctor` about a definition that was changed, and then all of its migration. */
async function expectAhead(dev: Dev, asked: (line: string) => Promise<string>): Promise<void> {
  const definition = path.join(packed.place, 'supabase', 'functions', '_pipelines', 'tickets.ts');
  const text = fs.readFileSync(definition, 'utf8');
  fs.writeFileSync(definition, text.replace("kind: 'function'", "kind: 'function', concurrency: 3"));
  const told = dev.told().length;
  expect(await asked('doctor')).toBe(
    'No migration defines the present state of: tickets. Run `npx millrace sync` and commit what it writes.\n',
  );
  expect(await here('sync')).toMatchObject({
    status: 0,
    stdout: expect.stringContaining(`${pushTo(dev)} brings it into`),
  });
  expect(await asked('doctor')).toBe(
    `The database defines pipeline tickets otherwise than the migrations of this folder: run \`${pushTo(dev)}\`.\n`,
  );
  await expect
    .poll(() => dev.told().slice(told), { timeout: 5_000 })
    .toMatch(/This database does not have \d+_pipeline_tickets\.sql yet: npx supabase db push /);
  fs.writeFileSync(definition, text);
  const migrations = path.join(packed.place, 'supabase', 'migrations');
  fs.rmSync(path.join(migrations, fs.readdirSync(migrations).at(-1) ?? ''));
  expect(await asked('doctor')).toBe('All is well.\n');
}

/** Applies what an uninstall writes: refused while runs are live, and by all of its options the schema is as it was. */
async function expectRemoved(client: pg.Client, schema: string[]): Promise<void> {
  const copy = path.join(packed.folder, 'left');
  fs.cpSync(packed.place, copy, { recursive: true, filter: (file) => !file.includes('node_modules') });
  const migrations = path.join(copy, 'supabase', 'migrations');
  const push = () =>
    client.query(fs.readFileSync(path.join(migrations, fs.readdirSync(migrations).at(-1) ?? ''), 'utf8'));
  expect((await here('uninstall', '--workdir', copy)).status).toBe(0);
  await expect(push()).rejects.toThrow(
    'runs are live: 1. Nothing was removed. End them, or run npx millrace uninstall --cancel and push again',
  );
  expect((await here('uninstall', '--columns', '--cancel', '--workdir', copy)).status).toBe(0);
  await push();
  expect(await snapshot(client)).toEqual(schema);
  // In a project that was left, init begins anew.
  expect((await here('init', '--workdir', copy)).stdout).toMatch(/wrote supabase\/migrations\/\d{14}_millrace\.sql/);
}
