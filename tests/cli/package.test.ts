// The package as a user has it: packed, installed into a project that the supabase CLI made, and used by its commands alone.
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startStack } from '../../local/platform/stack.ts';

const root = path.join(import.meta.dirname, '..', '..');
let folder: string;
let project: string;
let tarball: string;

beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-package-'));
  const packed = execFileSync('npm', ['pack', '--json', '--pack-destination', folder], { cwd: root, encoding: 'utf8' });
  tarball = path.join(folder, JSON.parse(packed.slice(packed.indexOf('[\n')))[0].filename);
  project = path.join(folder, 'app');
  fs.mkdirSync(project);
  execFileSync(path.join(root, 'node_modules', '.bin', 'supabase'), ['init', '--yes'], {
    cwd: project,
    stdio: 'ignore',
  });
  fs.writeFileSync(path.join(project, 'package.json'), '{"name": "app", "private": true}\n');
  const install = ['install', '--save-dev', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error', tarball];
  execFileSync('npm', install, { cwd: project, stdio: 'inherit' });
});
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

function millrace(...args: string[]) {
  const bin = path.join(project, 'node_modules', '.bin', 'millrace');
  const { status, stdout, stderr } = spawnSync(bin, args, {
    cwd: project,
    encoding: 'utf8',
    env: { PATH: process.env.PATH },
  });
  return { status, stdout, stderr };
}

/** All files of the project's own, with their texts. */
function filesOf(): Record<string, string> {
  const found = fs.readdirSync(project, { recursive: true, withFileTypes: true });
  const files = found.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
  return Object.fromEntries(
    files
      .map((file) => [path.relative(project, file), file] as const)
      .filter(([name]) => !name.startsWith('node_modules') && !name.startsWith('package'))
      .map(([name, file]) => [name, fs.readFileSync(file, 'utf8')]),
  );
}

/** Bytes of all files below a folder, one that has several names counted once. */
function sizeOf(place: string): number {
  const found = fs.readdirSync(place, { recursive: true, withFileTypes: true });
  const stats = found
    .filter((entry) => entry.isFile())
    .map((entry) => fs.lstatSync(path.join(entry.parentPath, entry.name)));
  return [...new Map(stats.map(({ ino, size }) => [ino, size])).values()].reduce((sum, size) => sum + size, 0);
}

test('the package is small to fetch and to keep', () => {
  expect(fs.statSync(tarball).size).toBeLessThan(1e6);
  expect(sizeOf(path.join(project, 'node_modules'))).toBeLessThan(25e6);
});

test('what is asked wrongly is answered with the usage or the remedy, and writes nothing', () => {
  const before = filesOf();
  expect(millrace('install')).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('There is no command install.'),
  });
  expect(millrace('init', '--now')).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("Unknown option '--now'."),
  });
  expect(millrace('init', '--workdir', os.tmpdir())).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('There is no supabase/config.toml, config.jsonc or config.json in '),
  });
  expect(millrace('add', 'tickets', 'triage').stderr).toContain('run `millrace init` first');
  expect(millrace('connect').stderr).toContain('set SUPABASE_URL');
  expect(millrace('uninstall')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('Millrace is not installed'),
  });
  const shown = millrace('init', '--dry-run');
  expect(shown.stdout).toContain('+serveMillrace();');
  expect(filesOf()).toEqual(before);
});

test('a file in the way leaves all as it was', () => {
  const before = filesOf();
  const inTheWay = path.join(project, 'supabase', 'functions');
  fs.writeFileSync(inTheWay, '');
  expect(millrace('init')).toMatchObject({ status: 1, stderr: expect.stringContaining('Nothing was written: ') });
  fs.rmSync(inTheWay);
  expect(filesOf()).toEqual(before);
});

test('from init to a completed row, through an upgrade, and out again', async () => {
  const table = (
    name: string,
  ) => `create table public.${name} (id bigint generated always as identity primary key, body text);
    alter table public.${name} enable row level security;
    revoke all on public.${name} from anon, authenticated, service_role;
    grant select, insert, update, delete on public.${name} to service_role;\n`;
  const migrations = path.join(project, 'supabase', 'migrations');
  fs.mkdirSync(migrations);
  fs.writeFileSync(path.join(migrations, '20260101000000_tables.sql'), table('tickets') + table('calls'));
  const before = filesOf();
  expect(millrace('init')).toMatchObject({ status: 0, stdout: expect.stringContaining('Next: npx millrace add') });
  expect(millrace('init').stdout).toBe('Nothing to do: all of it is there.\n');
  expect(millrace('add', 'tickets', 'triage', 'reply').status).toBe(0);
  expect(millrace('add', 'tickets', 'close_it').status).toBe(0);
  expect(millrace('add', 'tickets', 'triage').stderr).toContain('supabase/functions/tickets-triage is there already');
  expect(millrace('add', 'Tickets', 'triage').stderr).toContain('"Tickets" cannot be a name');
  expect(millrace('add', 'calls', 'transcribe', '--external').status).toBe(0);
  expect(millrace('sync', '--check')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('Run `millrace sync`'),
  });
  expect(millrace('sync')).toMatchObject({ status: 0, stdout: expect.stringContaining('_pipeline_tickets.sql') });
  expect(millrace('sync', '--check').status).toBe(0);

  const vitest = path.join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const config = `--config=${path.join(project, 'none.config.mjs')}`;
  fs.writeFileSync(path.join(project, 'none.config.mjs'), 'export default {};\n');
  fs.symlinkSync(path.join(root, 'node_modules', 'vitest'), path.join(project, 'node_modules', 'vitest'));
  const tested = spawnSync(process.execPath, [vitest, 'run', '--root', project, config], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, NO_COLOR: '1' },
  });
  expect(tested.stdout, tested.stderr).toMatch(/Tests\s+4 passed/);
  fs.rmSync(path.join(project, 'none.config.mjs'));

  await expectCompleted();

  const runtime = path.join(project, 'supabase', 'functions', '_millrace', 'mod.ts');
  const shipped = fs.readFileSync(runtime, 'utf8');
  expect(millrace('upgrade').stdout).toBe('Nothing to do: all of it is there.\n');
  fs.writeFileSync(runtime, `${shipped}// mine\n`);
  const refused = millrace('upgrade');
  expect(refused.status).toBe(1);
  expect(refused.stderr).toContain('-// mine');
  expect(refused.stderr).toContain('run this again with --force');
  expect(millrace('uninstall').stderr).toContain('You have edited mod.ts');
  expect(millrace('upgrade', '--force').status).toBe(0);
  expect(fs.readFileSync(runtime, 'utf8')).toBe(shipped);

  expect(millrace('uninstall').status).toBe(0);
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
}, 120_000);

/** Runs the project on a stack and has one ticket go through it. */
async function expectCompleted(): Promise<void> {
  const supabase = path.join(project, 'supabase');
  const stack = await startStack({
    migrations: path.join(supabase, 'migrations'),
    functionsDir: path.join(supabase, 'functions'),
  });
  const client = new pg.Client({ connectionString: stack.dbUrl });
  try {
    await client.connect();
    await client.query(`insert into public.tickets (triage_status) values ('queued')`);
    await expect
      .poll(async () => (await client.query('select close_it_status from public.tickets')).rows[0], { timeout: 30_000 })
      .toEqual({ close_it_status: 'completed' });
    expect((await client.query('select what from millrace.doctor() where not ok')).rows).toEqual([]);
    // Not spawnSync(): the stack's gateway is in this process.
    const connected = await promisify(execFile)(path.join(project, 'node_modules', '.bin', 'millrace'), ['connect'], {
      cwd: project,
      env: { PATH: process.env.PATH, SUPABASE_URL: stack.apiUrl, SUPABASE_SECRET_KEY: stack.secretKey },
    });
    expect(connected.stdout).toBe(
      `The database wakes functions at ${stack.apiUrl}, with MILLRACE_WAKE_SECRET.\ndoctor() finds all well.\n`,
    );
  } finally {
    await client.end();
    await stack.stop();
  }
}
