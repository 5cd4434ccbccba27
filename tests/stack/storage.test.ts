// The tables that Storage shares with the database: tables that migrations write to, and row-level security.
import fs from 'node:fs';
import path from 'node:path';
import { StorageClient } from '@supabase/storage-js';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Stack, startStack } from '../../local/platform/stack.ts';

let stack: Stack;
let storage: StorageClient;
let postgres: pg.Client;

beforeAll(async () => {
  stack = await startStack({
    services: false,
    migrations: false,
    functionsDir: path.join(import.meta.dirname, 'functions'),
    fsync: false,
  });
  storage = client(stack.secretKey);
  postgres = new pg.Client({ connectionString: stack.dbUrl });
  postgres.on('error', () => {});
  await postgres.connect();
});
afterAll(async () => {
  await postgres.end();
  await stack.stop();
});

function client(apikey: string, token = apikey): StorageClient {
  return new StorageClient(`${stack.apiUrl}/storage/v1`, { apikey, Authorization: `Bearer ${token}` });
}

async function refusal(statement: string): Promise<string | undefined> {
  try {
    await postgres.query(statement);
    return undefined;
  } catch (error) {
    return (error as { code: string }).code;
  }
}

describe('a migration', () => {
  it('makes a bucket by inserting it, twice without harm', async () => {
    const statement = `insert into storage.buckets (id, name, public, file_size_limit, allowed_mime_types)
      values ('books', 'books', false, 5, array['text/plain']) on conflict (id) do nothing`;
    await postgres.query(statement);
    await postgres.query(statement);
    const upload = (body: string) => storage.from('books').upload(body, body, { contentType: 'text/plain' });
    expect((await upload('short')).error).toBeNull();
    expect((await upload('longer')).error).not.toBeNull();
  });

  it('cannot change or drop the tables, nor delete from them', async () => {
    for (const statement of [
      'alter table storage.objects add column mine text',
      'alter table storage.objects disable row level security',
      'create table storage.mine ()',
      'create index on storage.objects (owner)',
      'drop table storage.objects',
      'drop function storage.foldername(text)',
      `delete from storage.objects where bucket_id = 'books'`,
      `delete from storage.buckets where id = 'books'`,
    ]) {
      expect([statement, await refusal(statement)]).toEqual([statement, '42501']);
    }
  });

  it('finds the parts of a name', async () => {
    const { rows } = await postgres.query(
      `select storage.foldername(n), storage.filename(n), storage.extension(n) from (values ('a/b c/d.tar.gz')) v (n)`,
    );
    expect(rows).toEqual([{ foldername: ['a', 'b c'], filename: 'd.tar.gz', extension: 'gz' }]);
  });
});

describe('a signed-in user', () => {
  const mine = '11111111-1111-4111-8111-111111111111';
  const other = '22222222-2222-4222-8222-222222222222';
  const as = async (sub: string) => client(stack.publishableKey, await stack.signUserToken({ sub })).from('homes');

  beforeAll(async () => {
    await storage.createBucket('homes');
    await postgres.query(`
      create policy own_folder on storage.objects for all to authenticated
      using (bucket_id = 'homes' and (storage.foldername(name))[1] = auth.uid()::text)
      with check (bucket_id = 'homes' and (storage.foldername(name))[1] = auth.uid()::text)`);
  });

  it('does what a policy allows, and is named as the owner', async () => {
    const bucket = await as(mine);
    expect((await bucket.upload(`${mine}/a.txt`, 'one')).error).toBeNull();
    expect((await bucket.upload(`${mine}/a.txt`, 'two', { upsert: true })).error).toBeNull();
    expect(await (await bucket.download(`${mine}/a.txt`)).data?.text()).toBe('two');
    const { rows } = await postgres.query(`select owner_id from storage.objects where bucket_id = 'homes'`);
    expect(rows).toEqual([{ owner_id: mine }]);
  });

  it('does nothing else: not in the place of another, not with a worn-out token', async () => {
    await (await as(mine)).upload(`${mine}/b.txt`, 'mine', { upsert: true });
    const bucket = await as(other);
    expect((await bucket.upload(`${mine}/c.txt`, 'x')).error).toMatchObject({ statusCode: '403' });
    expect((await bucket.upload(`${mine}/b.txt`, 'x', { upsert: true })).error).toMatchObject({ statusCode: '403' });
    expect((await bucket.download(`${mine}/b.txt`)).error).not.toBeNull();
    expect((await bucket.list(mine)).data).toEqual([]);
    expect((await bucket.remove([`${mine}/b.txt`])).data).toEqual([]);
    const expired = await stack.signUserToken({ sub: mine, exp: 1 });
    expect((await client(stack.publishableKey, expired).from('homes').download(`${mine}/b.txt`)).error).not.toBeNull();
    expect(await (await storage.from('homes').download(`${mine}/b.txt`)).data?.text()).toBe('mine');
  });
});

describe('on disk', () => {
  it('lies one file for each object: none of what was replaced, refused or removed', async () => {
    const files = () => fs.readdirSync(path.join(stack.dataDir, 'storage')).length;
    await storage.createBucket('tidy', { public: false, fileSizeLimit: 10 });
    const bucket = storage.from('tidy');
    const before = files();
    await bucket.upload('a.txt', 'one');
    await bucket.upload('a.txt', 'refused');
    await bucket.upload('a.txt', 'two', { upsert: true });
    await bucket.copy('a.txt', 'b.txt');
    await bucket.move('b.txt', 'c.txt');
    await bucket.upload('d.txt', 'longer than its bucket allows');
    expect(files() - before).toBe(2);
    await bucket.remove(['a.txt', 'c.txt']);
    expect(files() - before).toBe(0);
  });
});

describe('a crash of Postgres', () => {
  it('leaves the objects as they were, and Storage serves again', async () => {
    await storage.createBucket('kept');
    await storage.from('kept').upload('a.txt', 'kept');
    await stack.postgres.kill9();
    expect((await storage.from('kept').download('a.txt')).error).not.toBeNull();
    await stack.postgres.start();
    expect(await (await storage.from('kept').download('a.txt')).data?.text()).toBe('kept');
  });
});
