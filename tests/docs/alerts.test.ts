import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { definitionOf } from '../support/definitions.ts';
import { test } from '../support/engine.ts';
import { failed } from '../support/worker.ts';
import { changed, messageOf, testPage } from './page.ts';
import { claim, finish, start, sweep } from './play.ts';

const open = testPage('alerts');
const unresolved = 'select pipeline, stage, entity_id';

test('one alert for a stage that is late, retries or not, until it is done', async ({ engine }) => {
  const page = await open(engine);
  const claims = page.exported<PipelineDefinition>('claims');
  const id = await engine.value(`insert into public.claims (owner) values ('a') returning id`);
  await start(engine, claims, id);
  await engine.advance('8 minutes');
  const { worker, items } = await claim(engine, claims, 'assess');
  await worker.report(...items.map((item) => failed(item)));
  await engine.advance('4 minutes');
  await sweep(engine);
  await sweep(engine);
  expect(await page.run(engine, unresolved)).toMatchObject([
    { stage: 'assess', message: `assess of claims ${id} is 12 minutes old, its bound is 10 minutes` },
  ]);
  expect(await page.run(engine, 'select stage, sla, late')).toMatchObject([
    { stage: 'assess', late: '1' },
    { stage: 'approve', late: '0' },
  ]);
  expect(await page.run(engine, 'select what, ok, detail')).toMatchObject([{ ok: false }]);
  await finish(engine, claims, 'assess');
  expect(await page.run(engine, unresolved)).toEqual([]);
  expect(await page.run(engine, 'select stage, count')).toMatchObject([{ stage: 'assess', count: '1' }]);
});

test('a person who does not answer is late too; a longer bound takes it back', async ({ engine }) => {
  const page = await open(engine);
  const claims = page.exported<PipelineDefinition>('claims');
  const id = await engine.value(`insert into public.claims (owner) values ('a') returning id`);
  await start(engine, claims, id);
  await finish(engine, claims, 'assess');
  await engine.advance('25 hours');
  await sweep(engine);
  expect(await page.run(engine, unresolved)).toMatchObject([
    { stage: 'approve', message: `approve of claims ${id} is 1 day 1 hour old, its bound is 1 day` },
  ]);
  await engine.define(changed(claims, 'approve', { slaSeconds: 48 * 3600 }));
  await sweep(engine);
  expect(await page.run(engine, unresolved)).toEqual([]);
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
  expect(await page.run(engine, unresolved)).toMatchObject([{ stage: 'assess' }]);
  expect(await page.run(engine, 'select pipeline, stage, late, ready')).toMatchObject([
    { stage: 'assess', late: '1', ready: '1' },
    { stage: 'approve', late: '0', ready: '0' },
  ]);
  await page.run(engine, 'select millrace.unpause');
  expect(await page.run(engine, 'select pipeline, stage, late, ready')).toEqual([]);
  await finish(engine, claims, 'assess');
  expect(await page.run(engine, unresolved)).toEqual([]);
});

test('what goes wrong is said as the page says it', async ({ engine }) => {
  const page = await open(engine);
  const claims = page.exported<PipelineDefinition>('claims');
  const definition = definitionOf(claims) as { stages: object[] };
  definition.stages[0] = { ...definition.stages[0], sla_seconds: 0 };
  page.expectPromised(await messageOf(() => engine.define(definition)));
  await start(engine, claims, await engine.value(`insert into public.claims (owner) values ('a') returning id`));
  await engine.sql.query(`
    create function public.send() returns trigger language plpgsql as $$ begin raise exception 'nobody listens'; end $$;
    create trigger send before insert on millrace.alerts for each row execute function public.send()`);
  await engine.advance('1 hour');
  await sweep(engine);
  page.expectPromised(await engine.value(`select message from millrace.log where code = 'sweep_failed'`));
});
