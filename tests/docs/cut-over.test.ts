import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { type Engine, test } from '../support/engine.ts';
import { messageOf, type OpenPage, testPage } from './page.ts';
import { finish, start } from './play.ts';

const open = testPage('cut-over');

const both = (page: OpenPage) => ({
  old: page.exported<PipelineDefinition>('receiptInOneGo'),
  new: page.exported<PipelineDefinition>('receipts'),
});

const queueAt = (engine: Engine, id: unknown, stage = 'read') =>
  engine.rows(`update public.receipts set ${stage}_status = 'queued' where id = $1`, [id]);

/** The ways that runs of a receipt have gone, in order. */
async function waysOf(engine: Engine, id: unknown): Promise<string[]> {
  const rows = await engine.rows<{ way: string }>(
    `select p.name || ' ' || r.status as way from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
     where r.entity_id = $1 order by r.id`,
    [id],
  );
  return rows.map(({ way }) => way);
}

/** Inserts receipts of a customer and queues them in one statement; returns the ids of those that go the new way. */
async function queueMany(engine: Engine, count: number, customer = 'nobody'): Promise<Set<string>> {
  await engine.rows('insert into public.receipts (customer) select $1 from generate_series(1, $2)', [customer, count]);
  await engine.rows(
    `update public.receipts set read_status = 'queued' where 'queued' not in (read_status, everything_status)`,
  );
  const rows = await engine.rows<{ id: string }>(`select id from public.receipts where read_status = 'queued'`);
  return new Set(rows.map(({ id }) => id));
}

const insert = (engine: Engine) => engine.value<string>('insert into public.receipts default values returning id');

test('the flag shifts rows share by share, with one customer ahead, and back', async ({ engine }) => {
  const page = await open(engine);
  expect(await queueMany(engine, 20, 'acme')).toEqual(new Set());
  const afresh = async () => {
    await engine.rows(`select millrace.cancel(id) from millrace.runs where status = 'running'`);
    return queueMany(engine, 0);
  };
  await page.run(engine, 'update public.receipt_way set customers');
  await queueMany(engine, 180);
  const named = await afresh();
  expect(named.size).toBe(20);
  await page.run(engine, 'update public.receipt_way set share = 0.1');
  const tenth = await afresh();
  expect(tenth.size).toBeGreaterThan(25);
  expect(tenth.size).toBeLessThan(60);
  await engine.rows('update public.receipt_way set share = 0.5');
  const half = await afresh();
  expect(
    [...named, ...tenth].filter((id) => !half.has(id)),
    'a share that grows only adds',
  ).toEqual([]);
  expect(half.size).toBeLessThan(140);
  await page.run(engine, 'update public.receipt_way set share = 1');
  expect((await afresh()).size).toBe(200);
  await page.run(engine, 'update public.receipt_way set share = 0, customers');
  expect((await afresh()).size).toBe(0);
  expect(
    await engine.value('select count(distinct entity_id)::int from millrace.runs where status = $1', ['running']),
  ).toBe(200);
});

test('a row under way stays in its pipeline, a retry too, and both ways can be compared', async ({ engine }) => {
  const page = await open(engine);
  const pipelines = both(page);
  const id = await insert(engine);
  await queueAt(engine, id);
  await page.run(engine, 'update public.receipt_way set share = 1');
  await queueAt(engine, id);
  expect(await waysOf(engine, id), 'it goes on there').toEqual(['receipt_in_one_go running']);
  await engine.rows('select millrace.cancel(id) from millrace.runs');
  await engine.rows('select millrace.retry(id) from millrace.runs');
  expect(await waysOf(engine, id)).toEqual(['receipt_in_one_go running']);
  await finish(engine, pipelines.old, 'everything');

  await queueAt(engine, id);
  expect(await waysOf(engine, id)).toEqual(['receipt_in_one_go completed', 'receipts running']);
  expect(await engine.rows('select read_status, book_status, everything_status from public.receipts')).toEqual([
    { read_status: 'queued', book_status: 'pending', everything_status: 'pending' },
  ]);
  await page.run(engine, 'update public.receipt_way set share = 0, customers');
  await finish(engine, pipelines.new, 'read');
  await queueAt(engine, id);
  await finish(engine, pipelines.new, 'read');
  await finish(engine, pipelines.new, 'book');
  expect(await waysOf(engine, id)).toEqual(['receipt_in_one_go completed', 'receipts completed']);
  expect(await page.run(engine, 'select p.name, count')).toMatchObject([
    { name: 'receipt_in_one_go', runs: '1', completed: '1', cost_usd: null },
    { name: 'receipts', runs: '1', completed: '1', cost_usd: null },
  ]);
});

test('no row goes both ways, whoever names one', async ({ engine }) => {
  const page = await open(engine);
  const pipelines = both(page);
  const id = await insert(engine);
  await queueAt(engine, id);
  const refusals = [
    () => queueAt(engine, id, 'book'),
    () => start(engine, pipelines.new, id),
    () => engine.rows(`select millrace.start('receipts', $1, 'book')`, [id]),
  ];
  for (const refusal of refusals) page.expectPromised(await messageOf(refusal));
  await finish(engine, pipelines.old, 'everything');
  await start(engine, pipelines.new, id);
  page.expectPromised(await messageOf(() => queueAt(engine, id, 'everything')));
  page.expectPromised(await messageOf(() => start(engine, pipelines.old, id)));
  expect(await waysOf(engine, id)).toEqual(['receipt_in_one_go completed', 'receipts running']);
});

test('two sessions that queue a row at once, while the flag turns, begin one run', async ({ engine }) => {
  await open(engine);
  const id = await insert(engine);
  const first = await engine.database.connect();
  await first.query('begin');
  await first.query(`update public.receipts set read_status = 'queued' where id = $1`, [id]);
  const second = await engine.database.connect();
  await second.query('update public.receipt_way set share = 1');
  const waits = second.query(`update public.receipts set read_status = 'queued' where id = $1`, [id]);
  await first.query('commit');
  await waits;
  expect(await waysOf(engine, id)).toEqual(['receipt_in_one_go running']);
});
