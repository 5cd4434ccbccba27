// The contract of Supabase Storage as supabase-js sees it: of the stand-in, or of the project that SUPABASE_URL,
// SUPABASE_SECRET_KEY and SUPABASE_PUBLISHABLE_KEY name, so that the two can be compared.
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { type StorageApiError, StorageClient } from '@supabase/storage-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Stack, startStack } from '../../local/platform/stack.ts';
import { until } from '../support/until.ts';

// Names of their own, so that a project in use is not disturbed.
const mark = randomUUID().slice(0, 8);
const closed = `closed-${mark}`;
const open = `open-${mark}`;

let stack: Stack | undefined;
let target: { url: string; secretKey: string; publishableKey: string };
let storage: StorageClient;
let stranger: StorageClient;

beforeAll(async () => {
  target = await findTarget();
  storage = client(target.secretKey);
  stranger = client(target.publishableKey);
  await storage.createBucket(closed);
  await storage.createBucket(open, { public: true, fileSizeLimit: 1000, allowedMimeTypes: ['text/plain', 'image/*'] });
});
afterAll(async () => {
  for (const bucket of [closed, open]) {
    await emptyBucket(bucket);
    await storage.deleteBucket(bucket);
  }
  await stack?.stop();
});

async function findTarget() {
  const { SUPABASE_URL, SUPABASE_SECRET_KEY = '', SUPABASE_PUBLISHABLE_KEY = '' } = process.env;
  if (SUPABASE_URL) {
    return { url: SUPABASE_URL, secretKey: SUPABASE_SECRET_KEY, publishableKey: SUPABASE_PUBLISHABLE_KEY };
  }
  const functionsDir = path.join(import.meta.dirname, 'functions');
  stack = await startStack({ services: false, migrations: false, functionsDir, fsync: false });
  return { url: stack.apiUrl, secretKey: stack.secretKey, publishableKey: stack.publishableKey };
}

function client(apikey: string): StorageClient {
  return new StorageClient(`${target.url}/storage/v1`, { apikey, Authorization: `Bearer ${apikey}` });
}

async function emptyBucket(bucket: string, folder = ''): Promise<void> {
  const { data } = await storage.from(bucket).list(folder, { limit: 1000 });
  const place = (name: string) => (folder ? `${folder}/${name}` : name);
  for (const { name, id } of data ?? []) if (id === null) await emptyBucket(bucket, place(name));
  const files = (data ?? []).filter(({ id }) => id !== null).map(({ name }) => place(name));
  if (files.length > 0) await storage.from(bucket).remove(files);
}

/** The status that an error means, and its words. */
function told(error: unknown): [string | undefined, string] {
  const { statusCode, message } = error as StorageApiError;
  return [statusCode, message];
}

async function text(from: StorageClient, bucket: string, name: string): Promise<string | undefined> {
  return (await from.from(bucket).download(name)).data?.text();
}

describe('a bucket', () => {
  it('is listed with its settings, and cannot be made twice', async () => {
    const { data } = await storage.listBuckets();
    expect(data).toContainEqual(
      expect.objectContaining({
        id: open,
        name: open,
        public: true,
        file_size_limit: 1000,
        allowed_mime_types: ['text/plain', 'image/*'],
      }),
    );
    expect(told((await storage.createBucket(closed)).error)).toEqual(['409', 'The resource already exists']);
    expect(told((await storage.getBucket('no-such-bucket')).error)).toEqual(['404', 'Bucket not found']);
  });

  it('can be changed, and deleted once it is empty', async () => {
    const own = `own-${mark}`;
    await storage.createBucket(own);
    await storage.updateBucket(own, { public: true });
    expect((await storage.getBucket(own)).data?.public).toBe(true);
    await storage.from(own).upload('a.txt', 'a');
    expect(told((await storage.deleteBucket(own)).error)[0]).toBe('409');
    await storage.from(own).remove(['a.txt']);
    expect((await storage.deleteBucket(own)).error).toBeNull();
    expect(told((await storage.getBucket(own)).error)[0]).toBe('404');
  });

  it('refuses what is larger than its limit with 413, in a form or a plain body', async () => {
    const limit = await storage.from(open).upload('limit.txt', 'x'.repeat(1000), { contentType: 'text/plain' });
    expect(limit.error).toBeNull();
    const over = 'x'.repeat(1001);
    for (const body of [over, new Blob([over], { type: 'text/plain' })]) {
      const { error } = await storage.from(open).upload('over.txt', body, { contentType: 'text/plain' });
      expect(told(error)).toEqual(['413', 'The object exceeded the maximum allowed size']);
    }
  });

  it('refuses other content types than its own with 415', async () => {
    const upload = (contentType: string) => storage.from(open).upload('typed', 'x', { contentType, upsert: true });
    expect((await upload('image/png')).error).toBeNull();
    expect(told((await upload('application/pdf')).error)).toEqual([
      '415',
      'mime type application/pdf is not supported',
    ]);
  });
});

describe('an object', () => {
  it.each(['plain.bin', 'deep/in a/folder & (more)/file.bin', "it's;a=name@here,+1.bin"])(
    'at %s comes back byte by byte, with its content type',
    async (name) => {
      const bytes = new Uint8Array(70_000).map((_, index) => (index * 31) % 256);
      const uploaded = await storage.from(closed).upload(name, bytes, { contentType: 'application/x-own' });
      expect(uploaded.error).toBeNull();
      expect(uploaded.data).toMatchObject({ path: name, fullPath: `${closed}/${name}`, id: expect.any(String) });
      const { data } = await storage.from(closed).download(name);
      expect(Buffer.compare(Buffer.from((await data?.arrayBuffer()) as ArrayBuffer), bytes)).toBe(0);
      expect(data?.type).toBe('application/x-own');
    },
  );

  it('sent as a form keeps its bytes and type too', async () => {
    const bytes = new Uint8Array([0, 13, 10, 45, 45, 255]);
    await storage.from(closed).upload('form.bin', new Blob([bytes], { type: 'application/x-form' }));
    const { data } = await storage.from(closed).download('form.bin');
    expect([new Uint8Array((await data?.arrayBuffer()) as ArrayBuffer), data?.type]).toEqual([
      bytes,
      'application/x-form',
    ]);
  });

  it('cannot have letters beyond ASCII in its name', async () => {
    const { error } = await storage.from(closed).upload('föld/er.bin', 'x');
    expect(told(error)).toEqual(['400', 'Invalid key: föld/er.bin']);
  });

  it('is overwritten only when told to', async () => {
    const bucket = storage.from(closed);
    await bucket.upload('note.txt', 'one');
    expect(told((await bucket.upload('note.txt', 'two')).error)).toEqual(['409', 'The resource already exists']);
    expect(await text(storage, closed, 'note.txt')).toBe('one');
    expect((await bucket.upload('note.txt', 'three', { upsert: true })).error).toBeNull();
    expect(await text(storage, closed, 'note.txt')).toBe('three');
    expect((await bucket.update('note.txt', 'four')).error).toBeNull();
    expect(await text(storage, closed, 'note.txt')).toBe('four');
  });

  it('is one of the versions sent, whole, when several are sent at once', async () => {
    const versions = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(50_000));
    await Promise.all(versions.map((body) => storage.from(closed).upload('raced.txt', body, { upsert: true })));
    expect(versions).toContain(await text(storage, closed, 'raced.txt'));
  });

  it('that is missing is a 404 for every verb, and nothing to remove', async () => {
    const bucket = storage.from(closed);
    expect((await bucket.download('none.txt')).error).not.toBeNull();
    expect(told((await bucket.info('none.txt')).error)).toEqual(['404', 'Object not found']);
    expect(told((await bucket.createSignedUrl('none.txt', 60)).error)).toEqual(['404', 'Object not found']);
    expect((await bucket.exists('none.txt')).data).toBe(false);
    expect((await bucket.remove(['none.txt'])).data).toEqual([]);
    expect(told((await storage.from('no-such-bucket').upload('a', 'x')).error)).toEqual(['404', 'Bucket not found']);
  });

  it('tells about itself', async () => {
    await storage.from(closed).upload('about.txt', 'twelve bytes', { metadata: { pages: 3 } });
    const { data } = await storage.from(closed).info('about.txt');
    expect(data).toMatchObject({ name: 'about.txt', bucketId: closed, size: 12, metadata: { pages: 3 } });
    expect((await storage.from(closed).exists('about.txt')).data).toBe(true);
  });

  it('can be moved and copied, but not onto another', async () => {
    const bucket = storage.from(closed);
    await bucket.upload('from.txt', 'content');
    await bucket.copy('from.txt', 'copied.txt');
    expect((await bucket.move('from.txt', 'sub/moved.txt')).error).toBeNull();
    expect(await text(storage, closed, 'sub/moved.txt')).toBe('content');
    expect(await text(storage, closed, 'copied.txt')).toBe('content');
    expect(await text(storage, closed, 'from.txt')).toBeUndefined();
    expect(told((await bucket.move('copied.txt', 'sub/moved.txt')).error)[0]).toBe('409');
  });
});

describe('a listing', () => {
  it('goes folder by folder, sorted, in pieces', async () => {
    const bucket = storage.from(closed);
    for (const name of ['shelf/b.txt', 'shelf/a/1.txt', 'shelf/a/2.txt', 'shelf/c.txt'])
      await bucket.upload(name, 'xy');
    const { data } = await bucket.list('shelf');
    expect(data?.map(({ name, id }) => [name, id !== null])).toEqual([
      ['a', false],
      ['b.txt', true],
      ['c.txt', true],
    ]);
    expect(data?.[1]?.metadata).toMatchObject({ size: 2, mimetype: 'text/plain;charset=UTF-8' });
    const last = await bucket.list('shelf', { limit: 1, sortBy: { column: 'name', order: 'desc' } });
    expect(last.data?.map(({ name }) => name)).toEqual(['c.txt']);
    expect((await bucket.list('shelf/a', { offset: 1 })).data?.map(({ name }) => name)).toEqual(['2.txt']);
    expect((await bucket.list('shelf', { search: 'b' })).data?.map(({ name }) => name)).toEqual(['b.txt']);
    expect((await bucket.list('nowhere')).data).toEqual([]);
  });

  it('no longer shows what was removed', async () => {
    const bucket = storage.from(closed);
    for (const name of ['gone/1.txt', 'gone/2.txt']) await bucket.upload(name, 'x');
    const { data: removed } = await bucket.remove(['gone/1.txt', 'gone/none.txt']);
    expect(removed?.map(({ name }) => name)).toEqual(['gone/1.txt']);
    expect((await bucket.list('gone')).data?.map(({ name }) => name)).toEqual(['2.txt']);
  });
});

describe('without the secret key', () => {
  it('nothing in a private bucket can be read, written, listed or signed', async () => {
    await storage.from(closed).upload('secret.txt', 'secret');
    const bucket = stranger.from(closed);
    expect((await bucket.download('secret.txt')).error).not.toBeNull();
    expect(told((await bucket.upload('mine.txt', 'x')).error)[0]).toBe('403');
    expect((await bucket.list()).data).toEqual([]);
    expect((await bucket.remove(['secret.txt'])).data).toEqual([]);
    expect(told((await bucket.createSignedUrl('secret.txt', 60)).error)[0]).toBe('404');
    expect((await stranger.listBuckets()).data).toEqual([]);
    expect(told((await stranger.createBucket(`mine-${mark}`)).error)[0]).toBe('403');
    expect((await fetch(`${target.url}/storage/v1/object/${closed}/secret.txt`)).ok).toBe(false);
    expect(await text(storage, closed, 'secret.txt')).toBe('secret');
  });

  it('the objects of a public bucket can be read by their URL, and no others', async () => {
    await storage.from(open).upload('for all.txt', 'for all', { contentType: 'text/plain' });
    const url = stranger.from(open).getPublicUrl('for all.txt').data.publicUrl;
    expect(await (await fetch(url)).text()).toBe('for all');
    expect((await fetch(url, { method: 'HEAD' })).ok).toBe(true);
    const other = await fetch(stranger.from(closed).getPublicUrl('secret.txt').data.publicUrl);
    expect([other.status, await other.json()]).toMatchObject([400, { statusCode: '404', message: 'Bucket not found' }]);
    expect(told((await stranger.from(open).upload('mine.txt', 'x', { contentType: 'text/plain' })).error)[0]).toBe(
      '403',
    );
  });
});

describe('a signed URL', () => {
  const name = 'signed/the book.txt';

  async function signed(seconds: number): Promise<string> {
    await storage.from(closed).upload(name, 'signed', { upsert: true });
    return (await storage.from(closed).createSignedUrl(name, seconds)).data?.signedUrl as string;
  }

  async function refusal(url: string | URL) {
    const response = await fetch(url);
    return [response.status, ((await response.json()) as { code?: string }).code];
  }

  it('opens its object without a key', async () => {
    const url = await signed(60);
    expect(new URL(url).pathname).toBe(`/storage/v1/object/sign/${closed}/signed/the%20book.txt`);
    const response = await fetch(url);
    expect([response.status, await response.text()]).toEqual([200, 'signed']);
  });

  it('offers the object as a file when asked to', async () => {
    const { data } = await storage.from(closed).createSignedUrl(name, 60, { download: 'my book.txt' });
    const response = await fetch(data?.signedUrl as string);
    expect(response.headers.get('content-disposition')).toMatch(/^attachment;.*my%20book\.txt/);
  });

  it('opens no other object, and nothing once it was changed', async () => {
    const url = new URL(await signed(60));
    await storage.from(closed).upload('signed/other.txt', 'other');
    expect(await refusal(url.href.replace('the%20book', 'other'))).toEqual([400, 'InvalidSignature']);
    const token = url.searchParams.get('token') as string;
    url.searchParams.set(
      'token',
      token.replace(/.(?=.$)/, (letter) => (letter === 'A' ? 'B' : 'A')),
    );
    expect(await refusal(url)).toEqual([400, 'InvalidJWT']);
    url.searchParams.delete('token');
    expect((await fetch(url)).status).toBe(400);
  });

  it('stops to open it when its time is over', async () => {
    const url = await signed(1);
    await until(async () => (await fetch(url)).status === 400);
    expect(await refusal(url)).toEqual([400, 'InvalidJWT']);
  });

  it('is made for many objects in one call, with an error for each that is missing', async () => {
    await signed(60);
    const { data } = await storage.from(closed).createSignedUrls([name, 'none.txt'], 60);
    expect(data?.map(({ error, path }) => [error, path])).toEqual([
      [null, name],
      ['Either the object does not exist or you do not have access to it', 'none.txt'],
    ]);
    expect((await fetch(data?.[0]?.signedUrl as string)).status).toBe(200);
  });
});
