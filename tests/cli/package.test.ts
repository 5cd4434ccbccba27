// The package as a user has it: packed, installed into a project that the supabase CLI made, and used by its commands alone.
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startStack } from '../../local/platform/stack.ts';
import { makeNextLevel, type NextLevel, snapshot } from '../support/releases.ts';

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
  // As du counts. esbuild has 11.6 MB of it, zod 6.3.
  expect(sizeOf(path.join(project, 'node_modules'))).toBeLessThan(20 * 1024 * 1024);
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
  expect(millrace('add', 'tickets', 'triage').stderr).toContain('run `npx millrace init` first');
  expect(millrace('connect').stderr).toContain('set SUPABASE_URL');
  expect(millrace('uninstall').stderr).toContain('run `npx millrace init` first');
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
    stderr: expect.stringContaining('Run `npx millrace sync`'),
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

  const runtime = path.join(project, 'supabase', 'functions', '_millrace', 'mod.ts');
  const shipped = fs.readFileSync(runtime, 'utf8');
  expect(millrace('upgrade').stdout).toBe('Nothing to do: all of it is there.\n');
  fs.writeFileSync(runtime, `${shipped}// mine\n`);
  const refused = millrace('upgrade');
  expect(refused.status).toBe(1);
  expect(refused.stderr).toContain('+// mine');
  expect(refused.stderr).toContain('run this again with --force');
  expect(millrace('upgrade', '--force').status).toBe(0);
  expect(fs.readFileSync(runtime, 'utf8')).toBe(shipped);

  await expectUpgraded(await makeNextLevel());
  fs.appendFileSync(runtime, '// mine\n');
  const left = millrace('uninstall', '--columns', '--cancel');
  expect(left.stdout).toContain('remove supabase/functions/_millrace/mod.ts, which you have edited and which stays');
  fs.rmSync(path.join(project, 'supabase', 'functions', '_millrace'), { recursive: true });
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

/** Turns the installed package into that of a release whose engine is a level further. */
function releaseNext(next: NextLevel): void {
  const shipped = path.join(project, 'node_modules', 'millrace');
  const manifest = JSON.parse(fs.readFileSync(path.join(shipped, 'dist', 'manifest.json'), 'utf8'));
  const runtime = path.join(shipped, 'supabase', 'functions', '_millrace', 'mod.ts');
  fs.appendFileSync(runtime, '// Of the next release.\n');
  manifest.files['mod.ts'] = createHash('sha256').update(fs.readFileSync(runtime)).digest('hex');
  const text = JSON.stringify({ ...manifest, release: '99.0.0', level: next.level });
  fs.writeFileSync(path.join(shipped, 'dist', 'manifest.json'), text);
  fs.writeFileSync(path.join(shipped, 'dist', 'engine', `step-${next.level}.sql.gz`), gzipSync(next.upgrade));
  fs.writeFileSync(path.join(shipped, 'dist', 'engine', 'uninstall.sql.gz'), gzipSync(next.uninstallNext));
}

/** Runs the project on a stack, and upgrades it to the next level while a ticket is on its way. */
async function expectUpgraded(next: NextLevel): Promise<void> {
  const supabase = path.join(project, 'supabase');
  const migrations = path.join(supabase, 'migrations');
  const install = fs.readdirSync(migrations).find((name) => name.endsWith('_millrace.sql')) ?? '';
  fs.writeFileSync(path.join(migrations, install), next.installFormer);
  const stack = await startStack({ migrations, functionsDir: path.join(supabase, 'functions') });
  const client = new pg.Client({ connectionString: stack.dbUrl });
  try {
    await client.connect();
    await client.query(`select millrace.pause('tickets')`);
    await client.query(`insert into public.tickets (triage_status) values ('queued')`);

    releaseNext(next);
    expect(millrace('sync').stderr).toContain('run `npx millrace upgrade`, or `npx millrace@0.1.0 sync`');
    expect(millrace('upgrade', '--to', '0.9.0').stderr).toContain(
      'run `npm i -D millrace@0.9.0 && npx millrace upgrade`',
    );
    expect(millrace('upgrade')).toMatchObject({ status: 0, stdout: expect.stringContaining('Next: look at it') });
    const step = fs.readdirSync(migrations).at(-1) ?? '';
    expect(step).toMatch(new RegExp(`^\\d{14}_millrace_level_${next.level}\\.sql$`));
    expect(fs.readFileSync(path.join(migrations, step), 'utf8')).toBe(next.upgrade);
    expect(fs.readFileSync(path.join(supabase, 'functions', '_millrace', 'mod.ts'), 'utf8')).toContain('next release');
    expect(millrace('upgrade').stdout).toBe('Nothing to do: all of it is there.\n');

    await client.query(next.upgrade);
    await client.query(`select millrace.unpause('tickets')`);
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

    await client.query(`select millrace.pause('tickets')`);
    await client.query(`insert into public.tickets (triage_status) values ('queued')`);
    const removed = millrace('uninstall', '--columns', '--cancel', '--dry-run');
    expect(removed.stdout).toContain('+select millrace.cancel(r.id)');
    await expectRemoved(client);
  } finally {
    await client.end();
    await stack.stop();
  }
}

/** Applies what an uninstall with all of its options would write: then the tables are as they were. */
async function expectRemoved(client: pg.Client): Promise<void> {
  const copy = path.join(folder, 'left');
  fs.cpSync(project, copy, { recursive: true, filter: (file) => !file.includes('node_modules') });
  expect(millrace('uninstall', '--columns', '--cancel', '--workdir', copy).status).toBe(0);
  const migrations = path.join(copy, 'supabase', 'migrations');
  await client.query(fs.readFileSync(path.join(migrations, fs.readdirSync(migrations).at(-1) ?? ''), 'utf8'));
  const lines = (await snapshot(client)).filter((line) => !line.startsWith('schema '));
  expect(lines.filter((line) => /millrace|_status|_result/.test(line))).toEqual([]);
  expect(lines).toContain('table public.tickets row level security');
  // In a project that was left, init begins anew.
  expect(millrace('init', '--workdir', copy).stdout).toMatch(/wrote supabase\/migrations\/\d{14}_millrace\.sql/);
}
