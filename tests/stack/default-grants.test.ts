// Whichever rights a project grants by default to the API roles, the migrations leave them the same rights.
import fs from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createDataDirectory } from '../../local/platform/database/template.ts';
import { startPostgres } from '../../local/platform/postgres.ts';
import { scratchFolder } from '../../local/platform/scratch-folder.ts';
import { startWatchdog } from '../../local/platform/watchdog.ts';
import { createTestDatabase } from '../support/database.ts';

const project = path.join(import.meta.dirname, '..', '..');
const migrations = path.join(project, 'supabase', 'migrations');
const ends: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

/** The rights that each API role, and PUBLIC, have on tables, columns, sequences and functions that are not an extension's. */
async function rightsIn(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ text: string }>(`
    with acls as (
      select c.oid::regclass::text as object, coalesce(c.relacl, acldefault(case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner)) as acl
      from pg_class c where c.relkind in ('r', 'v', 'S') and c.relnamespace in ('public'::regnamespace, 'millrace'::regnamespace)
      union all
      select a.attrelid::regclass || '.' || a.attname, a.attacl from pg_attribute a join pg_class c on c.oid = a.attrelid
      where c.relnamespace = 'public'::regnamespace
      union all
      select p.oid::regprocedure::text, coalesce(p.proacl, acldefault('f', p.proowner))
      from pg_proc p where p.pronamespace in ('public'::regnamespace, 'millrace'::regnamespace, 'millrace_evidence'::regnamespace)
    )
    select format('%s: %s to %s', s.object, a.privilege_type, case a.grantee when 0 then 'public' else a.grantee::regrole::text end) as text
    from acls s, aclexplode(s.acl) a
    where a.grantee = 0 or a.grantee::regrole::text in ('anon', 'authenticated', 'service_role') order by 1`);
  return rows.map(({ text }) => text);
}

async function databaseOfOlderProject(): Promise<pg.Client> {
  const folder = fs.mkdtempSync(path.join(scratchFolder(), 'millrace-grants-'));
  fs.chmodSync(folder, 0o711);
  ends.push(() => fs.rmSync(folder, { recursive: true }));
  const watchdog = startWatchdog();
  watchdog.removeLater(folder);
  ends.push(() => watchdog.dismiss());
  const dataDir = path.join(folder, 'postgres');
  await createDataDirectory(dataDir, folder, { folder: migrations }, true);
  const server = await startPostgres({ dataDir, fsync: false, watchdog });
  ends.push(() => server.stop());
  const client = new pg.Client({ connectionString: server.url('postgres') });
  await client.connect();
  ends.push(() => client.end());
  return client;
}

/** The tables and functions of the README and of the pages, as one has them in a migration. */
function documentedTables(): string[] {
  const pages = fs.readdirSync(path.join(project, 'docs'), { recursive: true, encoding: 'utf8' });
  const files = ['README.md', ...pages.filter((name) => name.endsWith('.md')).map((name) => path.join('docs', name))];
  const blocks = files.flatMap((file) => {
    const text = fs.readFileSync(path.join(project, file), 'utf8');
    return [...text.matchAll(/^```sql\n(create table.*?)^```/gms)].map(([, block]) => block ?? '');
  });
  return blocks.filter((block) => !block.includes('public.test_clock'));
}

let today: pg.Client;
let older: pg.Client;
beforeAll(async () => {
  const database = await createTestDatabase();
  ends.push(() => database.drop());
  today = await database.connect();
  older = await databaseOfOlderProject();
});

it('the migrations end in the same rights in an older project, which grants all to the API roles, as in one of today', async () => {
  const rights = await rightsIn(today);
  expect(rights).toContain('leads: SELECT to service_role');
  expect(rights.filter((right) => /: (TRUNCATE|TRIGGER|REFERENCES|MAINTAIN) to/.test(right))).toEqual([]);
  expect(await rightsIn(older)).toEqual(rights);
  await older.query('begin; create table public.made ()');
  expect(await rightsIn(older)).toContain('made: SELECT to anon');
  await older.query('rollback');
});

it('and so do the tables in the README and on the pages, which the secret key can read and write', async () => {
  expect(documentedTables().length).toBeGreaterThan(10);
  for (const block of documentedTables()) {
    const found: string[][] = [];
    const tables = [...block.matchAll(/^create table public\.(\w+)/gm)].map(([, name]) => name);
    for (const client of [today, older]) {
      // An example may have such a table too.
      await client.query(`begin; drop table if exists ${tables.map((table) => `public.${table}`).join()} cascade`);
      const before = new Set(await rightsIn(client));
      await client.query(block);
      // A sequence of its own opens nothing.
      found.push((await rightsIn(client)).filter((right) => !before.has(right) && !/_seq: /.test(right)));
      await client.query('rollback');
    }
    expect(found[1]).toEqual(found[0]);
    for (const table of tables) {
      for (const right of ['SELECT', 'INSERT', 'UPDATE', 'DELETE']) {
        expect(found[0]).toContain(`${table}: ${right} to service_role`);
      }
    }
    expect(found[0]?.filter((right) => / to (anon|public)$/.test(right))).toEqual([]);
  }
});
