// `millrace check` in a project made from the package: each reason for which a deployment would be refused.
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { afterNow, PackedProject, tables, write } from '../support/cli/packed-project.ts';

const packed = new PackedProject();
const { here, filesOf, folderWith } = packed;

test('check names a function that is too large for Supabase, and one that only Docker can deploy', async () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const at = ['--workdir', place];
  for (const line of [['init'], ['add', 'tickets', 'triage', 'reply'], ['sync']]) await here(...line, ...at);
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
  const { status, stderr } = await here('check', ...at);
  expect(status).toBe(1);
  expect(stderr).toMatch(
    /Function tickets-triage has [56]\.\d\d MB .* takes 5 where it is deployed without Docker: .*its own files/,
  );
  expect(stderr).toMatch(
    /Function tickets-reply has 2\d\.\d\d MB once it is bundled, and Supabase takes 20: import less\. Its/,
  );
  expect(stderr).not.toContain('Function millrace');
});

test('check names what could not be deployed, and writes nothing', async () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const at = ['--workdir', place];
  for (const line of [['init'], ['add', 'tickets', 'triage', 'reply'], ['sync']]) await here(...line, ...at);
  expect(await here('check', ...at)).toMatchObject({
    status: 0,
    stdout: 'All is well: what is here can be deployed.\n',
  });

  const change = (name: string, how: (text: string) => string) => {
    const file = path.join(place, name);
    fs.writeFileSync(file, how(fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : ''));
  };
  const functions = 'supabase/functions';
  // Stamped a while ago, so that the migrations below, which may not be of the future, stand behind these.
  const pipelineMigration = 'supabase/migrations/20260201000001_pipeline_tickets.sql';
  for (const file of Object.keys(filesOf(place))) {
    const stamped = file.endsWith('_millrace.sql')
      ? 'supabase/migrations/20260201000000_millrace.sql'
      : pipelineMigration;
    if (/_(?:millrace|pipeline_tickets)\.sql$/.test(file))
      fs.renameSync(path.join(place, file), path.join(place, stamped));
  }
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
        'supabase/functions/tickets-triage/handler.ts:18: Pipeline tickets has no stage other: it has triage, reply. Bring the',
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
    const { status, stderr } = await here('check', ...at);
    expect(status).toBe(1);
    for (const [, , answer] of broken) expect(stderr).toContain(answer);
    expect(filesOf(place)).toEqual(changed);
    for (const [name] of broken) {
      if (before[name] === undefined) fs.rmSync(path.join(place, name));
      else change(name, () => before[name] ?? '');
    }
  }

  // The statements that `migration squash` leaves: functions, quoted as a dump quotes them, and no rows.
  const migrations = path.join(place, 'supabase', 'migrations');
  for (const name of fs.readdirSync(migrations)) fs.rmSync(path.join(migrations, name));
  write(
    place,
    'supabase/migrations/20260101000000_squashed.sql',
    `${tables}CREATE OR REPLACE FUNCTION "millrace"."engine"() RETURNS record AS $$ begin level := 1; end $$;\n`,
  );
  expect((await here('check', ...at)).stderr).toContain(
    'without its rows, as a squash leaves it: run `npx millrace init`',
  );
  expect((await here('init', ...at)).stdout).toMatch(/wrote supabase\/migrations\/\d{14}_millrace_set_up\.sql/);
  expect((await here('sync', ...at)).stdout).toContain('_pipeline_tickets.sql');
  expect((await here('check', ...at)).status).toBe(0);
});

test('check names what a deployment refuses of the configuration, and a Data API without the schema public', async () => {
  const place = folderWith({
    'supabase/config.toml':
      '[api]\nschemas = ["api"]\n[inbucket]\nport = 54324\n[auth.external.slack]\nenabled = true\n',
    'supabase/migrations/20260101000000_t.sql': tables,
  });
  const at = ['--workdir', place];
  for (const line of [['init'], ['add', 'tickets', 'triage'], ['sync']]) {
    expect((await here(...line, ...at)).status).toBe(0);
  }
  expect(await here('check', ...at)).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(
      /^\S+ has inbucket, .* refuses: call it local_smtp\.\n.* auth\.external\.slack, .*\n.* Data API serve api and not public, .*: add "public" to the/,
    ),
  });
  const config = path.join(place, 'supabase', 'config.toml');
  const text = fs.readFileSync(config, 'utf8').replace('["api"]', '["api", "public"]');
  fs.writeFileSync(config, text.replace('[inbucket]', '[local_smtp]').replace('slack]', 'slack_oidc]'));
  expect((await here('check', ...at)).status).toBe(0);
});

test('a file that cannot be read is named to whoever syncs or checks, with its place', async () => {
  const place = folderWith({ 'supabase/config.toml': '', 'supabase/migrations/20260101000000_t.sql': tables });
  const at = ['--workdir', place];
  for (const line of [['init'], ['add', 'tickets', 'triage']]) expect((await here(...line, ...at)).status).toBe(0);
  const functions = 'supabase/functions';
  const engine = Object.keys(filesOf(place)).find((name) => name.endsWith('_millrace.sql')) ?? '';
  const broken: [command: string, file: string, text: string | null, answer: RegExp][] = [
    [
      'sync',
      'supabase/config.toml',
      'a = 1\nb = = 2\n',
      /^supabase\/config\.toml is no TOML at line 2, column \d: correct it\.$/m,
    ],
    [
      'check',
      `${functions}/tickets-triage/deno.json`,
      '{\n  "a": }',
      /^supabase\/.*\/deno\.json is no JSON at line 2, column 8 \(/m,
    ],
    [
      'check',
      `${functions}/_millrace/manifest.json`,
      '{',
      /manifest\.json cannot be read \(.*\): delete it and run `npx millrace init`\.$/m,
    ],
    ['sync', engine, null, /^No migration installs the engine: run `npx millrace init` first\.$/m],
    ['sync', `${functions}/_pipelines`, null, /^There is no supabase\/functions\/_pipelines: /m],
  ];
  for (const [command, file, text, answer] of broken) {
    const whole = path.join(place, file);
    fs.renameSync(whole, `${whole}.whole`);
    if (text !== null) fs.writeFileSync(whole, text);
    expect(await here(command, ...at)).toMatchObject({ status: 1, stderr: expect.stringMatching(answer) });
    fs.renameSync(`${whole}.whole`, whole);
  }
  expect(await here('sync', ...at)).toMatchObject({ status: 0, stderr: '' });
});
