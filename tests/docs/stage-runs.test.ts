import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { type Engine, test } from '../support/engine.ts';
import { completed } from '../support/worker.ts';
import { messageOf, type OpenPage, testPage } from './page.ts';
import { claim, finish, start, status } from './play.ts';

const open = testPage('stage-runs');

async function order(engine: Engine, page: OpenPage) {
  const orders = page.exported<PipelineDefinition>('orders');
  const id = await engine.value('insert into public.orders (total) values (12) returning id');
  return { orders, run: await start(engine, orders, id) };
}

/** The rows that the page's first statement returns for `charge` and `ship`. */
async function shown(engine: Engine, page: OpenPage, run: string) {
  const rows = await page.run(engine, 'select stage, progress, can_start', { 42: run });
  return Object.fromEntries(rows.map(({ stage, ...rest }) => [stage, rest]));
}

test('a stage is not started, then in progress, then complete', async ({ engine }) => {
  const page = await open(engine);
  const { orders, run } = await order(engine, page);
  expect(await shown(engine, page, run)).toMatchObject({
    charge: {
      progress: 'in progress',
      can_start: false,
      is_started: true,
      is_done: false,
      failures: 0,
      fails_after: 2,
    },
    ship: { progress: 'not started', can_start: false, is_started: false, is_done: false },
  });
  const { worker, items } = await claim(engine, orders, 'charge');
  await page.run(engine, 'select millrace.complete_stage', { 42: run });
  expect(await worker.report(...items.map((item) => completed(item)))).toEqual(['stale']);
  expect(await shown(engine, page, run)).toMatchObject({
    charge: { progress: 'complete', is_started: true, is_done: true },
    ship: { progress: 'in progress' },
  });
  const [ship] = await finish(engine, orders, 'ship');
  expect(ship?.needs).toEqual({ charge: { receipt: 'r-1' } });
  expect(await page.run(engine, 'select stage, progress, count')).toHaveLength(2);
});

test('a failure by hand is tried again, and at the second it has failed', async ({ engine }) => {
  const page = await open(engine);
  const { run } = await order(engine, page);
  const failIt = () => page.run(engine, 'select millrace.fail_stage(42', { 42: run });
  await failIt();
  expect(await shown(engine, page, run)).toMatchObject({ charge: { progress: 'in progress', failures: 1 } });
  await failIt();
  expect(await shown(engine, page, run)).toMatchObject({
    charge: { progress: 'failed', is_done: true, failures: 2, error: 'the bank is closed' },
    ship: { progress: 'not started' },
  });
  expect(await page.run(engine, 'select run_id, entity_id, error')).toMatchObject([{ run_id: run }]);
});

test('a permanent failure ends the run at once', async ({ engine }) => {
  const page = await open(engine);
  const { run } = await order(engine, page);
  await page.run(engine, 'select millrace.fail_stage(43', { 43: run });
  expect(await status(engine, run)).toBe('failed');
});

test('each error of stage runs has the words of its page', async ({ engine }) => {
  const page = await open(engine);
  const { run } = await order(engine, page);
  const refused = async (call: string, ...values: unknown[]) =>
    page.expectPromised(await messageOf(() => engine.rows(`select millrace.${call}`, values)));
  await refused(`complete_stage($1, 'ship', '1')`, run);
  await refused(`start_stage($1, 'charge')`, run);
  await refused(`complete_stage($1, 'charge', null)`, run);
  await refused(`start_stage($1, 'charge')`, 999);
  await refused(`start_stage($1, 'ship')`, run);
});
