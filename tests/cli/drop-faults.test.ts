// The sentences of `check` about later migrations that take from the engine, by hand or as the CLI's schema tools write them.
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { dropFaults } from '../../cli/check/drop-faults.ts';
import { supabaseBinary } from '../../local/platform/binaries.ts';
import { createBareDatabase, createTestDatabase } from '../support/database.ts';
import { presentInstall } from '../support/engine/releases.ts';

const install = presentInstall();
const faultsOf = async (...texts: string[]) =>
  dropFaults([
    { name: '1_install.sql', text: await install },
    ...texts.map((text, at) => ({ name: `${at + 2}_x.sql`, text })),
  ]);

test.each([
  [
    'drop extension if exists "pg_net";',
    'drops the extension pg_net, which the engine needs: take that out, or create it again after.',
  ],
  ['drop extension pgjwt, pg_cron cascade;', 'drops the extension pg_cron, which the engine needs: take that out.'],
  ['drop extension if exists supabase_vault; create extension supabase_vault;', 'drops the extension supabase_vault'],
  ['drop schema if exists "millrace" cascade;', "drops what is Millrace's (drop schema if exists millrace)"],
  ['drop trigger if exists "millrace_leads_updated" on public.leads;', "drops what is Millrace's (drop trigger"],
  ["select cron.unschedule('millrace-sweep');", "drops what is Millrace's (cron.unschedule('millrace-sweep)"],
  [
    'create or replace function "millrace"."claim"() returns int language sql as $$ select 1 $$;',
    "rewrites what is Millrace's",
  ],
  [
    'CREATE OR REPLACE FUNCTION public.millrace_claim() returns int language sql as $$ select 1 $$;',
    "rewrites what is Millrace's",
  ],
  [
    'alter table only "millrace"."runs" drop constraint "x";',
    "rewrites what is Millrace's (alter table only millrace.runs)",
  ],
  ['alter table public.leads disable trigger millrace_leads_updated;', "rewrites what is Millrace's"],
])('named by check: %s', async (text, fault) => {
  expect(await faultsOf(text)).toEqual([expect.stringContaining(`supabase/migrations/2_x.sql ${fault}`)]);
});

test('no fault: what init --dashboard and --traces write', async () => {
  const runtime = path.join(import.meta.dirname, '../../supabase/functions/_millrace');
  const texts = ['dashboard/watch.sql', 'traces/traces.sql'].map((file) =>
    fs.readFileSync(path.join(runtime, file), 'utf8'),
  );
  expect(await faultsOf(...texts)).toEqual([]);
});

test.each([
  'drop extension if exists "pg_net"; create extension if not exists "pg_net" with schema "extensions";',
  'drop extension if exists "pg_graphql"; drop extension if exists "uuid-ossp";',
  '-- drop extension pg_net;',
  'create policy own on public.millrace_decisions for select to authenticated using (true);',
  'alter publication supabase_realtime add table public.millrace_decisions;',
  "select millrace.start('leads', '7');",
  'create function millrace_evidence.own_costs() returns int language sql as $$ select 1 $$;',
  'create or replace function millrace_evidence.own_costs() returns int language sql as $$ select 1 $$;',
  'create or replace function millrace.adopt(p text) returns int language sql as $$ select 1 $$;',
  'drop function if exists millrace.adopt_portion(millrace.pipelines, text);',
  'drop schema millrace_watch cascade;',
  'create or replace view millrace_watch.mine as select 1 as one;',
])('no fault: %s', async (text) => {
  expect(await faultsOf(text)).toEqual([]);
});

test('an extension that a still later migration creates again is no fault', async () => {
  expect(await faultsOf('drop extension pg_net;', 'create extension pg_net with schema extensions;')).toEqual([]);
});

test("the CLI's own diff, against a schema that lacks the engine, is named", async () => {
  const work = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-diff-'));
  fs.mkdirSync(path.join(work, 'supabase'));
  fs.writeFileSync(path.join(work, 'supabase', 'config.toml'), 'project_id = "diff"\n');
  const [migrated, declared] = await Promise.all([createTestDatabase('engine'), createBareDatabase()]);
  try {
    const env = { ...process.env, SUPABASE_TELEMETRY_DISABLED: '1', DO_NOT_TRACK: '1', NO_COLOR: '1' };
    const sides = ['--from', `${migrated.url}?sslmode=disable`, '--to', `${declared.url}?sslmode=disable`];
    const { stdout } = await promisify(execFile)(supabaseBinary(), ['db', 'diff', ...sides, '--workdir', work], {
      env,
      maxBuffer: 64 * 1024 * 1024,
    });
    expect(stdout).toContain('DROP SCHEMA "millrace"');
    expect(await faultsOf(stdout)).toEqual([expect.stringContaining("2_x.sql drops what is Millrace's (")]);
  } finally {
    await Promise.all([migrated.drop(), declared.drop()]);
    fs.rmSync(work, { recursive: true });
  }
});
