// What migrations of projects commonly say, run as a deployment runs it: the database that a project's first migration meets.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type pg from 'pg';
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

let database: TestDatabase;
let sql: pg.Client;
beforeAll(async () => {
  database = await createBareDatabase();
  sql = await database.connect();
});
afterAll(() => database.drop());

test.each(statements.filter(({ must }) => must))('a migration may say: $name', async ({ sql: statement }) => {
  await sql.query('begin');
  try {
    await expect(sql.query(statement)).resolves.toBeDefined();
  } finally {
    await sql.query('rollback');
  }
});
