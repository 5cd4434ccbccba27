import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { type Engine, test } from '../support/engine.ts';
import { messageOf, type OpenPage, testPage } from './page.ts';
import { fail, finish, spawn, start, states, status } from './play.ts';

const open = testPage('reset');

/** A shipment of three parcels, the second of which failed; `route` and `insure` are ready. */
async function weighed(engine: Engine, page: OpenPage) {
  const shipments = page.exported<PipelineDefinition>('shipments');
  const parcels = page.exported<PipelineDefinition>('parcels');
  await engine.sql.query('insert into public.shipments values (7)');
  await engine.sql.query('insert into public.parcels values (1), (2), (3)');
  const run = await start(engine, shipments, 7);
  await spawn(engine, shipments, 'split', ['1', '2', '3']);
  await fail(engine, parcels, 'weigh', ['2']);
  return { run, shipments, parcels };
}

/** The same when all its stages are completed. */
async function sent(engine: Engine, page: OpenPage) {
  const shipment = await weighed(engine, page);
  for (const stage of ['route', 'insure', 'send']) await finish(engine, shipment.shipments, stage, { by: 'first' });
  expect(await status(engine, shipment.run)).toBe('completed');
  return shipment;
}

const all = (state: string) => ({ route: state, insure: state, send: state });

test('a retry repeats what failed and nothing else', async ({ engine }) => {
  const page = await open(engine);
  const { run, shipments } = await weighed(engine, page);
  page.expectPromised(await messageOf(() => page.run(engine, 'select millrace.retry', { 42: run })));
  await finish(engine, shipments, 'insure');
  await fail(engine, shipments, 'route');
  expect(await page.run(engine, 'select run_id, stage')).toMatchObject([{ run_id: run, stage: 'route' }]);
  await page.run(engine, 'select millrace.retry', { 42: run });
  expect(await states(engine, run)).toEqual({
    split: 'completed',
    ...all('completed'),
    route: 'queued',
    send: 'pending',
  });
});

test('a reset repeats a stage and those after it, also of a run that is over', async ({ engine }) => {
  const page = await open(engine);
  const { run, shipments } = await sent(engine, page);
  await page.run(engine, `select millrace.reset(42, 'route')`, { 42: run });
  expect(await states(engine, run)).toMatchObject({ ...all('completed'), route: 'queued', send: 'pending' });
  expect(await page.run(engine, 'select a.number', { 42: run })).toMatchObject([
    { number: 1, output: { by: 'first' } },
  ]);
  await finish(engine, shipments, 'route', { by: 'second' });
  const [send] = await finish(engine, shipments, 'send');
  expect(send?.needs).toEqual({ route: { by: 'second' }, insure: { by: 'first' } });
  const timeline = await page.run(engine, 'select stage, number', { 42: run });
  expect(timeline.filter(({ superseded }) => superseded)).toMatchObject([{ stage: 'route' }, { stage: 'send' }]);
});

test('a reset of the run begins with its first stage, whose children are spawned anew', async ({ engine }) => {
  const page = await open(engine);
  const { run, shipments, parcels } = await sent(engine, page);
  await page.run(engine, 'select millrace.reset(42)', { 42: run });
  expect(await states(engine, run)).toEqual({ split: 'queued', ...all('pending') });
  await spawn(engine, shipments, 'split', ['1', '2', '3']);
  expect(await finish(engine, parcels, 'weigh')).toHaveLength(3);
  expect(await states(engine, run)).toMatchObject({ split: 'completed', route: 'queued' });
});

test('a reset of children lets the failed one go on, and what needs the map starts over', async ({ engine }) => {
  const page = await open(engine);
  const { run, shipments, parcels } = await sent(engine, page);
  expect(await page.run(engine, 'select millrace.reset_children', { 42: run })).toEqual([{ reset_children: 1 }]);
  expect(await states(engine, run)).toMatchObject(all('pending'));
  // A map spawns once more; those that were weighed stay so.
  await spawn(engine, shipments, 'split', ['1', '2', '3']);
  expect((await finish(engine, parcels, 'weigh')).map((item) => item.entity_id)).toEqual(['2']);
  const [route] = await finish(engine, shipments, 'route');
  expect(route?.needs).toEqual({ split: { total: 3, completed: 3, failed: 0, cancelled: 0 } });
});

test('an edit puts another result in place, and what comes of it starts over, unless somebody was faster', async ({
  engine,
}) => {
  const page = await open(engine);
  const { run, shipments } = await sent(engine, page);
  const attempt = await engine.value<string>(
    `select a.id from millrace.attempts a join millrace.stages s on s.id = a.stage_id where s.name = 'route'`,
  );
  const edit = () => page.run(engine, 'select public.millrace_act', { 42: run, 97: attempt });
  await edit();
  expect(await states(engine, run)).toMatchObject({ route: 'completed', send: 'queued' });
  page.expectPromised(await messageOf(edit));
  const [send] = await finish(engine, shipments, 'send');
  expect(send?.needs).toEqual({ route: { km: 12 }, insure: { by: 'first' } });
});

test('a skipped stage leaves null', async ({ engine }) => {
  const page = await open(engine);
  const { run, shipments } = await weighed(engine, page);
  await finish(engine, shipments, 'route', {});
  await fail(engine, shipments, 'insure');
  await page.run(engine, 'select millrace.skip', { 42: run });
  const [send] = await finish(engine, shipments, 'send');
  expect(send?.needs).toEqual({ route: {}, insure: null });
  expect(await status(engine, run)).toBe('completed');
});

test('each error of reset and retry has the words of its page', async ({ engine }) => {
  const page = await open(engine);
  const { run, shipments } = await weighed(engine, page);
  const refused = async (verb: string, stage: string) =>
    page.expectPromised(await messageOf(() => engine.rows(`select millrace.${verb}($1, $2)`, [run, stage])));
  await refused('skip', 'send');
  await finish(engine, shipments, 'route');
  await refused('skip', 'route');
  await refused('reset_children', 'route');
  await finish(engine, shipments, 'insure');
  await finish(engine, shipments, 'send');
  await start(engine, shipments, 7);
  await refused('reset', 'route');
  page.expectPromised(await messageOf(() => engine.rows('select millrace.retry($1)', [run])));
});
