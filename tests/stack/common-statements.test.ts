// The statements that migrations of projects commonly say, run as a deployment runs it: in a database that a project's first migration meets, or in
// the project whose `postgres` PGURL names. Nothing of it stays.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { withHostedRights } from '../../local/platform/database/hosted-rights.ts';
import { refuseMissingExtensions } from '../../local/platform/database/missing-extensions.ts';
import { realWorkers } from '../../local/platform/extensions.ts';
import { applyMigrations } from '../../local/platform/migrate.ts';
import { postgresFiles } from '../../local/platform/postgres-files.ts';
import { createBareDatabase, type TestDatabase } from '../support/database.ts';
import { postgresMajor } from '../support/postgres-major.ts';

interface Statement {
  name: string;
  sql: string;
  /** Whether the local stack carries it; what it cannot carry it names before it starts. */
  must: boolean;
  /** The error with which hosted refuses it, a pattern. */
  answer?: string;
  /** The first major version of Postgres that lets a role without a superuser's rights say it. */
  since?: number;
}

const statements: Statement[] = JSON.parse(
  fs.readFileSync(path.join(import.meta.dirname, 'common-statements.json'), 'utf8'),
);
const hasRealCron = realWorkers(postgresFiles()).includes('pg_cron');
const carried = statements.filter(({ must }) => must);

let database: TestDatabase | undefined;
let sql: pg.Client;
beforeAll(async () => {
  if (process.env.PGURL) {
    sql = new pg.Client({ connectionString: process.env.PGURL });
    await sql.connect();
  } else {
    database = await createBareDatabase();
    sql = await database.connect();
  }
});
afterAll(() => database?.drop() ?? sql.end());

async function run(statement: string): Promise<void> {
  await sql.query('begin');
  try {
    await sql.query(process.env.PGURL ? statement : await withHostedRights(statement));
  } finally {
    await sql.query('rollback');
    await sql.query('reset all');
  }
}

test.each(carried.filter(({ answer }) => answer === undefined))('a migration may say: $name', async (statement) => {
  // The real pg_cron can be made in its own database alone, and got as far as saying so.
  if (hasRealCron && /create extension pg_cron/.test(statement.sql))
    await expect(run(statement.sql)).rejects.toThrow('can only create extension in database');
  else if (postgresMajor < (statement.since ?? 0))
    await expect(run(statement.sql)).rejects.toThrow('must be superuser');
  else await expect(run(statement.sql)).resolves.toBeUndefined();
});

test.each(carried.filter(({ answer }) => answer !== undefined))(
  'hosted refuses, and so does the stack: $name',
  async (statement) => {
    await expect(run(statement.sql)).rejects.toThrow(new RegExp(statement.answer ?? ''));
  },
);

const dependsOnServer = Boolean(process.env.PGURL ?? process.env.MILLRACE_POSTGRES);
test.skipIf(dependsOnServer).each(statements.filter(({ must }) => !must))(
  'named before anything runs: $name',
  async (statement) => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-statement-'));
    fs.writeFileSync(path.join(folder, '20260101000000_first.sql'), statement.sql);
    const [what] =
      /(?<=extension (?:if not exists )?"?)(?!if )\w+|pgsodium\.\w+/g.exec(statement.sql.replace('"pgsodium"', '')) ??
      [];
    await expect(refuseMissingExtensions(folder)).rejects.toThrow(
      new RegExp(`first\\.sql:1 (?:creates the extension|calls) ${what}, which the local stack does not have`),
    );
    fs.rmSync(folder, { recursive: true });
  },
);

test.skipIf(process.env.PGURL)('a migration has these rights through the CLI, for these statements alone', async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-statement-'));
  const write = (name: string, text: string) => fs.writeFileSync(path.join(folder, `2026010100000${name}.sql`), text);
  const url = database?.url ?? '';
  write('0_first', `${statements.find(({ name }) => name === 'event trigger that secures new tables')?.sql};`);
  await applyMigrations(url, { folder });
  const trigger = "select evtowner::regrole::text as owner from pg_event_trigger where evtname = 'ensure_rls'";
  expect((await sql.query(trigger)).rows).toEqual([{ owner: 'postgres' }]);
  // Also where one fails: nothing of its transaction stays.
  write('1_second', 'create event trigger again on ddl_command_end execute function public.none();');
  await expect(applyMigrations(url, { folder })).rejects.toThrow('function public.none() does not exist');
  const { rows } = await sql.query("select rolsuper from pg_roles where rolname = 'postgres'");
  expect(rows).toEqual([{ rolsuper: false }]);
  fs.rmSync(folder, { recursive: true });
});

test('nearly all of the list is carried', () => {
  const page = fs.readFileSync(path.join(import.meta.dirname, '..', '..', 'docs', 'local-stack.md'), 'utf8');
  expect(page).toContain(`of ${statements.length} statements`);
  expect(carried.length / statements.length).toBeGreaterThanOrEqual(140 / 150);
});
