// What migrations of projects commonly say, run as a deployment runs it: in a database that a project's first migration meets, or in
// the project whose `postgres` PGURL names. Nothing of it stays.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createBareDatabase, type TestDatabase } from '../support/database.ts';

interface Statement {
  name: string;
  sql: string;
  /** Whether the local stack carries it; what it cannot carry it names before it starts. */
  must: boolean;
}

const statements: Statement[] = JSON.parse(
  readFileSync(path.join(import.meta.dirname, 'common-statements.json'), 'utf8'),
);

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

test.each(statements.filter(({ must }) => must))('a migration may say: $name', async ({ sql: statement }) => {
  await sql.query('begin');
  try {
    await expect(sql.query(statement)).resolves.toBeDefined();
  } finally {
    await sql.query('rollback');
  }
});
