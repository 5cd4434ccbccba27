import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { definitionOf } from '../support/definitions.ts';
import { findingsTest as test } from '../support/engine.ts';
import { failed } from '../support/worker.ts';
import { messageOf, testPage } from './page.ts';
import { claim, finish, start, sweep } from './play.ts';

const open = testPage('alerts');
const lateRuns = 'select pipeline, stage, entity_id';

test('a run that is late is listed, retries or not, until it is done, and one alert tells of its stage', async ({
  engine,
}) => {
  const page = await open(engine);
  const claims = page.exported<PipelineDefinition>('claims');
  const id = await engine.value(`insert into public.claims (owner) values ('a') returning id`);
  await start(engine, claims, id);
  await engine.advance('8 minutes');
  const { worker, items } = await claim(engine, claims, 'assess');
  await worker.report(...items.map((item) => failed(item)));
  await engine.advance('4 minutes');
  expect(await page.run(engine, lateRuns)).toMatchObject([{ stage: 'assess', entity_id: id, state: 'queued' }]);
  await sweep(engine);
  const run = await engine.value(`select run_id from millrace.late_runs`);
  expect(await page.run(engine, 'select stage, sla, late')).toMatchObject([
    { stage: 'assess', late: '1' },
    { stage: 'approve', late: '0' },
  ]);
  await finish(engine, claims, 'assess');
  expect(await page.run(engine, lateRuns)).toEqual([]);
  expect(await page.run(engine, 'select stage, value')).toMatchObject([
    { stage: 'assess', runs: '1', run, resolved_at: null },
  ]);
  await engine.advance('6 minutes');
  await sweep(engine);
  await engine.advance('6 minutes');
  await sweep(engine);
  expect(await page.run(engine, 'select stage, value')).toMatchObject([{ resolved_at: expect.anything() }]);
});

test('a person who does not answer is late too', async ({ engine }) => {
  const page = await open(engine);
  const claims = page.exported<PipelineDefinition>('claims');
  const id = await engine.value(`insert into public.claims (owner) values ('a') returning id`);
  await start(engine, claims, id);
  await finish(engine, claims, 'assess');
  await engine.advance('25 hours');
  expect(await page.run(engine, lateRuns)).toMatchObject([{ stage: 'approve', state: 'waiting' }]);
});

test('a stage that somebody paused is late, and is seen to be paused', async ({ engine }) => {
  const page = await open(engine);
  const claims = page.exported<PipelineDefinition>('claims');
  await start(engine, claims, await engine.value(`insert into public.claims (owner) values ('a') returning id`));
  expect(await page.run(engine, 'select pipeline, stage, late, ready')).toEqual([]);
  await engine.sql.query(`select millrace.pause('claims')`);
  await engine.advance('11 minutes');
  await sweep(engine);
  expect(await claim(engine, claims, 'assess')).toMatchObject({ items: [] });
  expect(await page.run(engine, lateRuns)).toMatchObject([{ stage: 'assess' }]);
  expect(await page.run(engine, 'select pipeline, stage, late, ready')).toMatchObject([
    { stage: 'assess', late: '1', ready: '1' },
    { stage: 'approve', late: '0', ready: '0' },
  ]);
  await page.run(engine, 'select millrace.unpause');
  expect(await page.run(engine, 'select pipeline, stage, late, ready')).toEqual([]);
  await finish(engine, claims, 'assess');
  expect(await page.run(engine, lateRuns)).toEqual([]);
});

test('each error of the alerts pattern has the words of its page', async ({ engine }) => {
  const page = await open(engine);
  const claims = page.exported<PipelineDefinition>('claims');
  const definition = definitionOf(claims) as { stages: object[] };
  definition.stages[0] = { ...definition.stages[0], sla_seconds: 0 };
  page.expectPromised(await messageOf(() => engine.define(definition)));
});
