import fs from 'node:fs';
import path from 'node:path';
import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

const chapter = path.join(import.meta.dirname, '..', '..', 'engine', 'structure', '0001_extensions.sql');

let database: TestDatabase;
let owner: pg.Client;

beforeAll(async () => {
  database = await createTestDatabase();
  owner = await database.connect('supabase_admin');
});
afterAll(() => database.drop());

/** A project whose Vault was never enabled, for the length of a transaction. */
async function withoutVault(work: () => Promise<void>): Promise<void> {
  await owner.query('begin; drop extension supabase_vault; drop schema vault');
  try {
    await work();
  } finally {
    await owner.query('rollback');
  }
}

it('Vault makes its own schema, and is refused where it is told to use one that is not there', async () => {
  await withoutVault(async () => {
    await owner.query('savepoint before');
    await expect(owner.query('create extension supabase_vault with schema vault cascade')).rejects.toThrow(
      'schema "vault" does not exist',
    );
    await owner.query('rollback to before; create extension supabase_vault cascade');
    await owner.query(`select vault.create_secret('s3cret', 'name')`);
  });
});

it('the chapter on extensions enables Vault where it was never enabled', async () => {
  await withoutVault(async () => {
    await owner.query(fs.readFileSync(chapter, 'utf8'));
    await owner.query(`select vault.create_secret('s3cret', 'name')`);
    const { rows } = await owner.query(`select decrypted_secret from vault.decrypted_secrets where name = 'name'`);
    expect(rows).toEqual([{ decrypted_secret: 's3cret' }]);
  });
});
