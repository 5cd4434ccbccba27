import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { definitionOf } from '../support/definitions.ts';
import { type Engine, test } from '../support/engine.ts';
import { messageOf, testPage } from './page.ts';
import { claim, finish, sweep } from './play.ts';

const open = testPage('bypass');
const shown = (engine: Engine) =>
  engine
    .rows<{ status: string }>('select status from public.reviews order by id')
    .then((rows) => rows.map((row) => row.status));

test('reviews go on without their rating, and are rated once somebody takes them up', async ({ engine }) => {
  const page = await open(engine);
  const reviews = page.exported<PipelineDefinition>('reviews');
  await engine.sql.query(`update public.test_clock set at = now()`);
  await engine.sql.query(`insert into public.reviews (text) values ('good'), ('bad')`);
  await finish(engine, reviews, 'clean', { text: 'clean' });
  expect(await page.run(engine, 'select millrace.bypass')).toEqual([{ bypass: 2 }]);
  expect(await shown(engine)).toEqual(['cleaned', 'cleaned']);
  expect(await engine.rows('select distinct status from millrace.runs')).toEqual([{ status: 'completed' }]);
  expect(await page.run(engine, 'select s.name, b.reason')).toMatchObject([
    { name: 'rate', reason: 'the model is down' },
  ]);
  await engine.sql.query(`insert into public.reviews (text) values ('late')`);
  await finish(engine, reviews, 'clean');
  await sweep(engine);
  expect((await claim(engine, reviews, 'rate')).items).toEqual([]);
  expect(await page.run(engine, 'select reason, count(*)')).toMatchObject([{ count: '3' }]);
  page.expectPromised(await messageOf(() => engine.sql.query(`select millrace.take_up('reviews', 'rate')`)));
  await page.run(engine, 'select millrace.end_bypass');
  expect(await page.run(engine, 'select millrace.take_up')).toEqual([{ take_up: 3 }]);
  const items = await finish(engine, reviews, 'rate', { stars: 5 });
  expect(items.map((item) => item.needs)).toContainEqual({ clean: { text: 'clean' } });
  expect(await shown(engine)).toEqual(['rated', 'rated', 'rated']);
});

test('a bypass ends when its time is over', async ({ engine }) => {
  const page = await open(engine);
  const reviews = page.exported<PipelineDefinition>('reviews');
  await engine.sql.query(`update public.test_clock set at = now()`);
  await page.run(engine, 'select millrace.bypass');
  await engine.advance('6 hours 1 second');
  await sweep(engine);
  await engine.sql.query(`insert into public.reviews (text) values ('good')`);
  await finish(engine, reviews, 'clean');
  expect(await finish(engine, reviews, 'rate')).toHaveLength(1);
});

test('each error of the bypass has the words of its page', async ({ engine }) => {
  const page = await open(engine);
  for (const call of [
    `bypass('reviews', 'rate', '')`,
    `end_bypass('reviews', 'rate')`,
    `take_up('reviews', 'rate', 0)`,
  ]) {
    page.expectPromised((await engine.refusal(`select millrace.${call}`)).message);
  }
  const definition = definitionOf(page.exported<PipelineDefinition>('reviews')) as { stages: { name: string }[] };
  const stages = definition.stages.map((stage) => (stage.name === 'rate' ? { ...stage, when_spent: 'bypass' } : stage));
  page.expectPromised(await messageOf(() => engine.define({ ...definition, stages })));
});
