import path from 'node:path';
import { StorageClient } from '@supabase/storage-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Stack, startStack } from '../../local/stack.ts';

let stack: Stack;
let storage: StorageClient;

beforeAll(async () => {
  stack = await startStack({
    services: false,
    migrations: false,
    functionsDir: path.join(import.meta.dirname, 'functions'),
    fsync: false,
  });
  storage = client(stack.secretKey);
  await storage.createBucket('private');
  await storage.createBucket('shown', { public: true });
});
afterAll(() => stack.stop());

function client(apikey: string): StorageClient {
  return new StorageClient(`${stack.apiUrl}/storage/v1`, { apikey, Authorization: `Bearer ${apikey}` });
}

describe('storage', () => {
  it('creates and lists buckets, and refuses a second one of the same name', async () => {
    const { data } = await storage.listBuckets();
    expect(data?.map(({ name, public: isPublic }) => [name, isPublic]).sort()).toEqual([
      ['private', false],
      ['shown', true],
    ]);
    expect((await storage.createBucket('private')).error?.message).toMatch(/already exists/);
  });

  it('gives back what was uploaded, byte by byte, with its content type', async () => {
    const bytes = new Uint8Array([0, 1, 2, 255]);
    const bucket = storage.from('private');
    await bucket.upload('deep/in a/földer.bin', bytes, { contentType: 'application/x-own' });
    const { data } = await bucket.download('deep/in a/földer.bin');
    expect(new Uint8Array((await data?.arrayBuffer()) as ArrayBuffer)).toEqual(bytes);
    expect(data?.type).toBe('application/x-own');
  });

  it('overwrites only when told to', async () => {
    const bucket = storage.from('private');
    await bucket.upload('note.txt', 'one');
    expect((await bucket.upload('note.txt', 'two')).error?.message).toMatch(/already exists/);
    expect((await bucket.upload('note.txt', 'three', { upsert: true })).error).toBeNull();
    expect(await (await bucket.download('note.txt')).data?.text()).toBe('three');
  });

  it('lists folder by folder, and removes', async () => {
    const bucket = storage.from('shown');
    for (const name of ['a/1.txt', 'a/2.txt', 'b.txt']) await bucket.upload(name, 'x');
    expect((await bucket.list()).data?.map(({ name }) => name)).toEqual(['a', 'b.txt']);
    expect((await bucket.list('a')).data?.map(({ name }) => name)).toEqual(['1.txt', '2.txt']);
    const { data: removed } = await bucket.remove(['a/1.txt', 'a/none.txt']);
    expect(removed?.map(({ name }) => name)).toEqual(['a/1.txt']);
    expect((await bucket.download('a/1.txt')).error).not.toBeNull();
  });

  it('is for service_role alone, but for the objects of public buckets', async () => {
    await storage.from('shown').upload('open.txt', 'for all', { upsert: true });
    const stranger = client(stack.publishableKey);
    expect((await stranger.from('private').upload('x.txt', 'x')).error).not.toBeNull();
    expect((await stranger.from('private').download('note.txt')).error).not.toBeNull();
    const url = stranger.from('shown').getPublicUrl('open.txt').data.publicUrl;
    expect(await (await fetch(url)).text()).toBe('for all');
    expect((await fetch(url.replace('/shown/open', '/private/note'))).status).toBe(404);
  });
});
