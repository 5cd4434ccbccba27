import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { modelSettings } from '../../supabase/functions/_millrace/model/model-settings.ts';
import { settingsFaults } from '../../supabase/functions/_millrace/settings.ts';
import { test } from '../support/engine.ts';
import { completed, failed } from '../support/worker.ts';
import { docsFolder, testPage } from './page.ts';
import { claim, start } from './play.ts';

const open = testPage('costs', docsFolder);
const paid = (cost_usd: number) => ({ usage: { model: 'test-model', input_tokens: 1, output_tokens: 1, cost_usd } });

test('failed and repeated attempts count in costs by stage, by run and by account', async ({ engine }) => {
  const page = await open(engine);
  const essays = page.exported<PipelineDefinition>('essays');
  const id = await engine.value(
    `insert into public.essays (account_id, body) values (gen_random_uuid(), 'On nets') returning id`,
  );
  const run = await start(engine, essays, id);
  expect(await page.run(engine, 'select account_id')).toMatchObject([{ essays: '1', cost_usd: null }]);

  const first = await claim(engine, essays, 'outline');
  await first.worker.report(...first.items.map((item) => ({ ...failed(item), ...paid(0.25) })));
  await engine.advance('1 minute');
  const second = await claim(engine, essays, 'outline');
  await second.worker.report(...second.items.map((item) => ({ ...completed(item), ...paid(0.5) })));

  expect(await page.run(engine, 'select account_id')).toMatchObject([{ cost_usd: '0.75' }]);
  expect(await page.run(engine, 'select sum(cost_usd)', { 42: run })).toEqual([{ sum: '0.75' }]);
  expect(await page.run(engine, 'select stage, cost_usd', { 42: run })).toEqual([
    { stage: 'outline', cost_usd: '0.75' },
    { stage: 'review', cost_usd: null },
  ]);
  expect(await page.run(engine, 'select usage', { 42: run })).toContainEqual({ model: 'test-model', cost_usd: '0.75' });

  await engine.sql.query('select millrace.sweep()');
  expect(await page.run(engine, 'select at, tenant')).toMatchObject([{ tenant: '', sum: '0.75' }]);

  const third = await claim(engine, essays, 'review');
  const usage = { model: 'silent-model', input_tokens: null, output_tokens: null, cost_usd: null, unreported: true };
  await third.worker.report(...third.items.map((item) => ({ ...completed(item), usage })));
  expect(await page.run(engine, 'select stage, count(*)', { 42: run })).toEqual([{ stage: 'review', count: '1' }]);
});

test('a price that is none is named', async ({ engine }) => {
  const page = await open(engine);
  const env = { LLM_URL: 'http://m.test', LLM_MODEL: 'm', LLM_PRICE_INPUT: 'cheap' };
  page.expectPromised(settingsFaults([modelSettings], env)[0]);
});
