// The example embeddings beside embeddings by a queue, under the same writes and the same fates of calls.
import { expect } from 'vitest';
import { projectTest as test } from '../support/engine.ts';
import { MemoWriter, writeAtRandom } from '../support/examples/memo-writes.ts';
import { isVectorOf, MemoSite, Provider, price } from '../support/examples/memos.ts';
import { QueuedEmbeddings } from './queued-embeddings.ts';

const seed = Number(process.env.SOAK_SEED ?? 1);
const writes = Number(process.env.EMBEDDING_WRITES ?? 3_000);
const say = (what: object) => process.stdout.write(`\n${JSON.stringify({ seed, writes, ...what })}\n`);

test('the example has no stale and no lost vector', { timeout: 1_800_000 }, async ({ engine }) => {
  const site = await new MemoSite(engine).start();
  const writer = new MemoWriter(engine, 'public.memos', seed);
  await writeAtRandom(writer, site.provider, () => site.round(), { writes, seed });
  await site.untilDone();
  site.provider.release(true);
  await site.untilDone();
  expect(await site.faults()).toEqual([]);
  const { calls, texts, tokens } = site.provider;
  const chunks = await engine.value('select count(*)::int from public.memo_chunks');
  say({ way: 'the example', calls, texts, tokens, cost: (tokens * price) / 1_000_000, chunks });
});

test('a queue has', { timeout: 1_800_000 }, async ({ engine }) => {
  const provider = await new Provider().start();
  const queue = await new QueuedEmbeddings(engine, provider).start();
  const writer = new MemoWriter(engine, 'public.queued_memos', seed);
  await writeAtRandom(writer, provider, () => queue.round(), { writes, seed });
  // An hour without writes and without faults.
  for (let at = 0; at < 360; at++) await queue.round();
  const rows = await engine.rows<{ body: string; embedding: string | null }>(
    'select body, embedding::text from public.queued_memos',
  );
  const written = rows.filter(({ body }) => body.trim() !== '');
  const stale = written.filter((row) => row.embedding && !isVectorOf(row.body, row.embedding.replace(/[{}]/g, '')));
  const lost = written.filter(({ embedding }) => embedding === null).length;
  const ofNothing = rows.filter(({ body, embedding }) => body.trim() === '' && embedding !== null).length;
  const { calls, texts, tokens } = provider;
  const jobs = await engine.value('select count(*)::int from public.embedding_jobs');
  say({ way: 'a queue', calls, texts, tokens, cost: (tokens * price) / 1_000_000, stale: stale.length, lost });
  say({ way: 'a queue', ofNothing, jobsRetriedForEver: jobs, memos: written.length });
  expect(stale.length).toBeGreaterThan(0);
});
