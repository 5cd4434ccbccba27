import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { checked, definitionOf } from '../support/definitions.ts';
import { type Engine, test } from '../support/engine.ts';
import { changed, messageOf, type OpenPage, testPage } from './page.ts';
import { errorOf, fail, finish, start, states, status, sweep } from './play.ts';

const open = testPage('child-pipelines');

/** An invoice whose run waits for its child, and the child's run. */
async function extracted(engine: Engine, page: OpenPage) {
  const [invoices, checks] = ['invoices', 'checks'].map((name) => page.exported<PipelineDefinition>(name));
  if (!invoices || !checks) throw new Error('the page defines invoices and checks');
  const id = await engine.value(`insert into public.invoices (path) values ('a.pdf') returning id`);
  const run = await start(engine, invoices, id);
  await finish(engine, invoices, 'extract');
  const [child] = await page.run(engine, 'select c.id', { 42: run });
  return { invoices, checks, id, run, child: child?.id as string };
}

test('the child runs over the same row, and its last results are those of the stage', async ({ engine }) => {
  const page = await open(engine);
  const { invoices, checks, run, id } = await extracted(engine, page);
  expect(await states(engine, run)).toEqual({ extract: 'completed', check: 'waiting', pay: 'pending' });
  const [sums] = await finish(engine, checks, 'sums', { total: 12 });
  expect(sums).toMatchObject({ entity_id: String(id), needs: {} });
  await finish(engine, checks, 'tax', { rate: 0.2 });
  const [pay] = await finish(engine, invoices, 'pay');
  expect(pay?.needs).toEqual({ check: { tax: { rate: 0.2 } } });
  expect(await page.run(engine, 'select r.id', { 42: run })).toMatchObject([
    { name: 'invoices', status: 'completed' },
    { name: 'checks', status: 'completed' },
  ]);
});

test('a failed child fails its parent, whose retry lets the child go on where it failed', async ({ engine }) => {
  const page = await open(engine);
  const { invoices, checks, run, child } = await extracted(engine, page);
  await finish(engine, checks, 'sums');
  await fail(engine, checks, 'tax');
  expect(await status(engine, run)).toBe('failed');
  page.expectPromised(await errorOf(engine, run));
  page.expectPromised(await messageOf(() => engine.sql.query('select millrace.retry($1)', [child])));
  await engine.sql.query('select millrace.retry($1)', [run]);
  expect(await states(engine, run)).toMatchObject({ check: 'waiting' });
  expect(await states(engine, child)).toEqual({ sums: 'completed', tax: 'queued' });
  await finish(engine, checks, 'tax');
  await finish(engine, invoices, 'pay');
  expect(await status(engine, run)).toBe('completed');
});

test('with onFailure: continue the parent goes on without the child', async ({ engine }) => {
  const page = await open(engine);
  await engine.define(changed(page.exported('invoices'), 'check', { onFailure: 'continue' }));
  const { checks, run } = await extracted(engine, page);
  await fail(engine, checks, 'sums');
  expect(await states(engine, run)).toMatchObject({ check: 'skipped', pay: 'queued' });
});

test('a cancelled parent has its child cancelled', async ({ engine }) => {
  const { run, child } = await extracted(engine, await open(engine));
  await engine.sql.query('select millrace.cancel($1)', [run]);
  await sweep(engine);
  expect(await status(engine, child)).toBe('cancelled');
});

test('a stage that is reset after its child was over starts another', async ({ engine }) => {
  const page = await open(engine);
  const { checks, run, child } = await extracted(engine, page);
  await finish(engine, checks, 'sums');
  await finish(engine, checks, 'tax');
  await engine.sql.query(`select millrace.reset($1, 'check')`, [run]);
  const children = await page.run(engine, 'select c.id', { 42: run });
  expect(children).toMatchObject([{ id: child, status: 'completed' }, { status: 'running' }]);
});

test('a stage that is reset while its child runs ends that one and starts another', async ({ engine }) => {
  const page = await open(engine);
  const { run, child } = await extracted(engine, page);
  await engine.sql.query(`select millrace.reset($1, 'check')`, [run]);
  const children = await page.run(engine, 'select c.id', { 42: run });
  expect(children).toMatchObject([{ id: child, status: 'cancelled' }, { status: 'running' }]);
});

test('a row whose child runs already by itself is not taken', async ({ engine }) => {
  const page = await open(engine);
  const [invoices, checks] = [
    page.exported<PipelineDefinition>('invoices'),
    page.exported<PipelineDefinition>('checks'),
  ];
  const id = await engine.value(`insert into public.invoices (path) values ('a.pdf') returning id`);
  await start(engine, checks, id);
  const run = await start(engine, invoices, id);
  await finish(engine, invoices, 'extract');
  page.expectPromised(await errorOf(engine, run));
});

test('a faulty definition of a child pipeline is refused in the words of the page', async ({ engine }) => {
  const page = await open(engine);
  const elsewhere = definitionOf(page.exported<PipelineDefinition>('invoices'));
  await engine.sql.query('create table public.bills (id bigint primary key)');
  const bills = { ...elsewhere, pipeline: 'bills', entity: { table: 'public.bills', key: 'id', projection: 'none' } };
  page.expectPromised(await messageOf(() => engine.define(bills)));
  const again = { kind: 'pipeline' as const, child: { pipeline: 'checks' } };
  const entity = { table: 'public.invoices', key: 'id', projection: 'none' as const };
  const beside = { check: again, again };
  page.expectPromised(await messageOf(() => checked({ name: 'twice', entity, stages: beside })));
  const child = { pipeline: 'invoices' };
  const round = {
    ...definitionOf(page.exported<PipelineDefinition>('checks')),
    stages: [{ name: 'sums', kind: 'pipeline', child }],
  };
  page.expectPromised(await messageOf(() => engine.define(round)));
});
