import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { definitionOf } from '../support/definitions.ts';
import { test } from '../support/engine.ts';
import { messageOf, testPage } from './page.ts';
import { claim, fail, finish, start, sweep } from './play.ts';

const open = testPage('figures');
const insert = `insert into public.clippings (url) values ('https://one.test/') returning id`;

test('stages and runs are counted with their times, their errors and what they cost', async ({ engine }) => {
  const page = await open(engine);
  const clippings = page.exported<PipelineDefinition>('clippings');
  for (let n = 0; n < 4; n++) await start(engine, clippings, await engine.value(insert));
  const { worker, items } = await claim(engine, clippings, 'scrape', 3);
  await engine.advance('10 seconds');
  await worker.report(
    ...items.map(({ attempt, token }) => ({
      attempt,
      token,
      outcome: 'completed',
      result: {},
      usage: { cost_usd: 0.5 },
    })),
  );
  await fail(engine, clippings, 'scrape');
  await finish(engine, clippings, 'extract');
  expect(await page.run(engine, 'select completed, failed, retried')).toMatchObject([
    { completed: '3', failed: '1', retried: '0', cost_usd: '1.5', codes: { no_content: 1 } },
  ]);
  const series = await page.run(engine, 'select at, completed');
  expect(series.map(({ completed }) => Number(completed)).reduce((sum, n) => sum + n)).toBe(3);
  expect(series.map(({ failed }) => Number(failed)).reduce((sum, n) => sum + n)).toBe(1);
  expect(await page.run(engine, 'select stage, ready')).toMatchObject([
    { stage: 'scrape', completed: '3', failed: '1', retries: '0' },
    { stage: 'extract', completed: '3', failed: '0' },
  ]);
});

test('runs keep to their bounds, until they are under way for too long', async ({ engine }) => {
  const page = await open(engine);
  const clippings = page.exported<PipelineDefinition>('clippings');
  await start(engine, clippings, await engine.value(insert));
  await finish(engine, clippings, 'scrape');
  await finish(engine, clippings, 'extract');
  expect(await page.run(engine, 'select median_seconds')).toMatchObject([{ overdue: '0', ok: true }]);
  for (let n = 0; n < 3; n++) await start(engine, clippings, await engine.value(insert));
  await engine.advance('21 minutes');
  await sweep(engine);
  expect(await page.run(engine, 'select median_seconds')).toMatchObject([{ overdue: '3', ok: false }]);
  expect(await page.run(engine, 'select pipeline, broken')).toMatchObject([{ pipeline: 'clippings' }]);
});

test('each error of figures has the words of its page', async ({ engine }) => {
  const page = await open(engine);
  const definition = definitionOf(page.exported<PipelineDefinition>('clippings'));
  page.expectPromised(await messageOf(() => engine.define({ ...definition, sla: { p95_seconds: 0 } })));
  page.expectPromised(
    await messageOf(() =>
      engine.rows(`select * from millrace.series('clippings', null, '2026-01-01', '2026-02-01', '1 minute')`),
    ),
  );
});
