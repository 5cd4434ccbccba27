import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import type { Stage } from '../../supabase/functions/_millrace/stage/stage.ts';
import { type Engine, test } from '../support/engine.ts';
import { changed, messageOf, type OpenPage, testPage } from './page.ts';
import { claim, errorOf, fail, finish, start, states, status, sweep, work } from './play.ts';

const open = testPage('fan-out');

/** A scan that was split into its sheets. */
async function splitScan(engine: Engine, page: OpenPage, sheets = 3, fanIn?: object) {
  const scans = page.exported<PipelineDefinition>('scans');
  if (fanIn) await engine.define(changed(scans, 'split', { fanIn }));
  const id = await engine.value('insert into public.scans (sheets) values ($1) returning id', [sheets]);
  const run = await start(engine, scans, id);
  await work(engine, page.exported<Stage>('split'));
  return { scans, sheets: page.exported<PipelineDefinition>('sheets'), run };
}

/** The row of a scan's sheet. */
const sheet = (engine: Engine, number: number) =>
  engine.value<string>('select id::text from public.sheets where number = $1', [number]);

test('a scan becomes its sheets, whose failure is ignored, and goes on with their numbers', async ({ engine }) => {
  const page = await open(engine);
  const { scans, sheets, run } = await splitScan(engine, page);
  expect(await states(engine, run)).toEqual({ split: 'waiting', bind: 'pending' });
  expect(await engine.rows('select number from public.sheets order by number')).toHaveLength(3);
  await fail(engine, sheets, 'read', [await sheet(engine, 2)]);
  const [bind] = await finish(engine, scans, 'bind');
  expect(bind?.needs).toEqual({ split: { total: 3, completed: 2, failed: 1, cancelled: 0 } });
  expect(await status(engine, run)).toBe('completed');
  expect(await page.run(engine, 'select state, total', { 42: run })).toMatchObject([
    { state: 'finished', total: 3, spawned: 3, completed: 2, failed: 1, cancelled: 0 },
  ]);
  expect(await page.run(engine, 'select r.item_key', { 42: run })).toHaveLength(3);
});

test('a worker that dies after its first chunk is followed by one that starts nothing twice', async ({ engine }) => {
  const page = await open(engine);
  const scans = page.exported<PipelineDefinition>('scans');
  const id = await engine.value('insert into public.scans (sheets) values (501) returning id');
  const run = await start(engine, scans, id);
  const { worker, items } = await claim(engine, scans, 'split', 1);
  const chunk = JSON.stringify(Array.from({ length: 500 }, (_, n) => ({ key: n + 1 })));
  const spawn = 'select public.millrace_spawn($1, $2, $3, $4, false) as answer';
  await worker.client.query(spawn, [worker.id, items[0]?.attempt, items[0]?.token, chunk]);
  await engine.advance('10 minutes');
  await sweep(engine);
  await engine.advance('10 minutes');
  await work(engine, page.exported<Stage>('split'));
  expect(await engine.value('select count(*)::int from public.sheets')).toBe(501);
  expect(await page.run(engine, 'select state, total', { 42: run })).toMatchObject([{ total: 501, spawned: 501 }]);
});

test('with failedChildren: fail the first failed child fails the stage', async ({ engine }) => {
  const page = await open(engine);
  const { sheets, run } = await splitScan(engine, page, 3, {});
  await fail(engine, sheets, 'read', [await sheet(engine, 2)]);
  expect(await status(engine, run)).toBe('failed');
  page.expectPromised(await errorOf(engine, run));
});

test('after a week without its children the stage fails', async ({ engine }) => {
  const page = await open(engine);
  const { run } = await splitScan(engine, page);
  await engine.advance('6 days 23 hours');
  await sweep(engine);
  expect(await states(engine, run)).toMatchObject({ split: 'waiting' });
  await engine.advance('2 hours');
  await sweep(engine);
  expect(await states(engine, run)).toMatchObject({ split: 'failed' });
  page.expectPromised(await errorOf(engine, run));
});

test('the child pipeline must be defined before', async ({ engine }) => {
  const page = await open(engine);
  const unknown = changed(page.exported('scans'), 'split', { child: { pipeline: 'leaves' } });
  page.expectPromised(await messageOf(() => engine.define(unknown)));
});
