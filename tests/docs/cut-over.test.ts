import { expect } from 'vitest';
import { definePipeline, type PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import type { PipelineInput } from '../../supabase/functions/_millrace/define/definition-schema.ts';
import { type Engine, test } from '../support/engine.ts';
import { completed } from '../support/worker.ts';
import { messageOf, type OpenPage, testPage } from './page.ts';
import { claim, fail, finish, start, status } from './play.ts';

const open = testPage('cut-over');

const both = (page: OpenPage) => ({
  old: page.exported<PipelineDefinition>('receiptInOneGo'),
  new: page.exported<PipelineDefinition>('receipts'),
});

/** Inserts a receipt of a customer and starts it, always by the new pipeline's name; returns its id and the way its run went. */
async function queue(
  engine: Engine,
  page: OpenPage,
  customer = 'nobody',
): Promise<{ id: string; run: string; way: string }> {
  const id = await engine.value<string>(
    `insert into public.receipts (metadata) values (jsonb_build_object('customer', $1::text)) returning id`,
    [customer],
  );
  const run = await start(engine, both(page).new, id);
  const way = await engine.value<string>(
    'select p.name from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id where r.id = $1',
    [run],
  );
  return { id, run, way };
}

test('one customer, then a share, then all, then back', async ({ engine }) => {
  const page = await open(engine);
  const [flag] = await page.run(engine, 'select mode, share');
  expect(flag).toMatchObject({ mode: 'default', share: null, groups: null });
  expect((await queue(engine, page, 'acme')).way).toBe('receipt_in_one_go');

  await page.run(engine, `select millrace.set_cut_over('receipts', 'groups'`);
  expect((await queue(engine, page, 'acme')).way).toBe('receipts');
  expect((await queue(engine, page, 'other')).way).toBe('receipt_in_one_go');

  await page.run(engine, `select millrace.set_cut_over('receipts', 'share'`);
  const ways: string[] = [];
  for (let n = 0; n < 60; n++) ways.push((await queue(engine, page)).way);
  expect(new Set(ways)).toEqual(new Set(['receipts', 'receipt_in_one_go']));
  expect(ways.filter((way) => way === 'receipts').length).toBeLessThan(20);

  await page.run(engine, `select millrace.set_cut_over('receipts', 'on'`);
  expect((await queue(engine, page)).way).toBe('receipts');
  await page.run(engine, `select millrace.set_cut_over('receipts', 'off'`);
  expect((await queue(engine, page)).way).toBe('receipt_in_one_go');
});

test('what is under way stays where it is, and both ways can be compared', async ({ engine }) => {
  const page = await open(engine);
  const pipelines = both(page);
  const { id, run } = await queue(engine, page, 'acme');
  await page.run(engine, `select millrace.set_cut_over('receipts', 'on'`);
  const [way] = await page.run(engine, 'select way, why', { 42: id });
  expect(way).toEqual({ way: 'old', why: `run ${run} is under way` });
  expect(await start(engine, pipelines.new, id), 'it goes on there').toBe(run);
  const { worker, items } = await claim(engine, pipelines.old, 'everything');
  await worker.report({ ...completed(items[0] as (typeof items)[0]), usage: { cost_usd: 0.5 } });
  expect(await status(engine, run)).toBe('completed');

  const next = await start(engine, pipelines.new, id);
  expect(next).not.toBe(run);
  await finish(engine, pipelines.new, 'read');
  await finish(engine, pipelines.new, 'book');
  expect(await engine.value('select millrace.metadata_of($1)', [next])).toEqual({ customer: 'acme' });
  expect(await page.run(engine, 'select stage, attempts', { 42: run })).toMatchObject([
    { stage: 'everything', attempts: 1, cost_usd: '0.5' },
  ]);
  expect(await page.run(engine, 'select way, runs')).toMatchObject([
    { way: 'new', runs: '1', success_share: '1.0000', cost_per_run: null },
    { way: 'old', runs: '1', success_share: '1.0000', cost_per_run: '0.500000' },
  ]);
});

test('what goes wrong is said as the page says it', async ({ engine }) => {
  const page = await open(engine);
  const pipelines = both(page);
  const lost = await queue(engine, page);
  await fail(engine, pipelines.old, 'everything');
  await engine.sql.query(`select millrace.set_cut_over('receipts', 'on')`);
  await start(engine, pipelines.new, lost.id);
  page.expectPromised(await messageOf(() => start(engine, pipelines.old, lost.id)));
  page.expectPromised(await messageOf(() => engine.rows('select millrace.retry($1)', [lost.run])));
  for (const flag of [`'share', 10`, `'groups', p_groups => array[]`, `'groups', array['acme']`]) {
    page.expectPromised(await messageOf(() => engine.rows(`select millrace.set_cut_over('receipts', ${flag})`)));
  }

  const { entity, replaces } = pipelines.new.toJson() as { entity: PipelineInput['entity']; replaces: object };
  expect(replaces).toEqual({ pipeline: 'receipt_in_one_go', group_by: 'customer' });
  const { metadata: _, ...without } = entity;
  const input = { name: 'receipts', entity: without, replaces: { pipeline: 'receipt_in_one_go', groupBy: 'customer' } };
  page.expectPromised(
    await messageOf(() => definePipeline({ ...input, stages: pipelines.new.stages } as PipelineInput)),
  );

  await engine.sql.query(`select millrace.set_cut_over('receipts', 'default')`);
  await engine.sql.query(`select vault.create_secret('yes', 'millrace_use_new_pipeline')`);
  expect((await queue(engine, page)).way).toBe('receipt_in_one_go');
  page.expectPromised(await engine.value(`select message from millrace.log where code = 'use_new_pipeline_malformed'`));
});
