import { expect } from 'vitest';
import { compileSharedLimits } from '../../supabase/functions/_millrace/compile/compile-shared-limits.ts';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { defineSharedLimits } from '../../supabase/functions/_millrace/define/define-shared-limits.ts';
import { test } from '../support/engine/shared-limits.ts';
import type { Engine } from '../support/engine.ts';
import { type Claimed, completed, failed } from '../support/worker.ts';
import { changed, messageOf, type OpenPage, testPage } from './page.ts';
import { claim, finish, start } from './play.ts';

const open = testPage('shared-limits');

async function visit(engine: Engine, page: OpenPage, pipeline: string, count: number): Promise<void> {
  const rows = await engine.rows(
    `insert into public.visits (url) select 'https://example.com/' || n from generate_series(1, $1) n returning id`,
    [count],
  );
  for (const { id } of rows) await start(engine, page.exported(pipeline), id);
}
const taken = async (engine: Engine, page: OpenPage, pipeline: string, stage: string) =>
  (await claim(engine, page.exported(pipeline), stage)).items.length;

test('sixty a minute at both pipelines, none while the site has asked for patience', async ({ engine }) => {
  const page = await open(engine);
  await visit(engine, page, 'visits', 50);
  await visit(engine, page, 'repeats', 80);
  const { worker, items } = await claim(engine, page.exported('visits'), 'fetch');
  expect(items).toHaveLength(50);
  expect(await taken(engine, page, 'repeats', 'again')).toBe(10);
  await worker.report(failed(items[0] as Claimed, { code: 'rate_limited', retry_after_ms: 30_000 }));
  await engine.advance('29 seconds');
  expect(await taken(engine, page, 'repeats', 'again')).toBe(0);
  expect(await page.run(engine, 'select name, key')).toMatchObject([{ name: 'site', key: null }]);
  const [, site] = await page.run(engine, 'select name, stages');
  expect(site).toMatchObject({ name: 'site', today: { rate: { count: 60 } } });
  await engine.advance('1 second');
  expect(await taken(engine, page, 'repeats', 'again')).toBe(30);
});

test('five dollars a day, asked for before the work begins', async ({ engine }) => {
  const page = await open(engine);
  await visit(engine, page, 'visits', 40);
  await finish(engine, page.exported('visits'), 'fetch');
  const judge = await claim(engine, page.exported('visits'), 'judge');
  expect(judge.items).toHaveLength(1);
  await judge.worker.report({ ...completed(judge.items[0] as Claimed), usage: { cost_usd: 0.5 } });
  await engine.sql.query('select millrace.sweep()');
  const rest = await judge.worker.take(40);
  expect(rest).toHaveLength(9);
  await judge.worker.report(...rest.map((item) => ({ ...completed(item), usage: { cost_usd: 0.5 } })));
  expect(await judge.worker.take(40)).toEqual([]);
  const [account] = await page.run(engine, 'select name, stages');
  expect(account).toMatchObject({ name: 'account', in_flight: '0', spent_usd: '5.0', spent_for: ['visits.judge'] });
  expect(await page.run(engine, 'select what, ok')).toMatchObject([
    { ok: false, detail: expect.stringContaining('its budget pays for nothing more at visits.judge until 2026-11-03') },
    { ok: true, detail: 'as declared' },
  ]);
});

test('changed by hand, and for a while', async ({ engine }) => {
  const page = await open(engine);
  await page.run(engine, 'select millrace.define_limit');
  await page.run(engine, 'select millrace.drop_limit');
  await page.run(
    { rows: (text) => engine.rows(text.replace('now()', 'millrace.now()')) },
    'select millrace.throttle_limit',
  );
  await visit(engine, page, 'visits', 30);
  expect(await taken(engine, page, 'visits', 'fetch')).toBe(10);
  await page.run(engine, 'select millrace.unthrottle_limit');
  await engine.advance('1 minute');
  expect(await taken(engine, page, 'visits', 'fetch')).toBe(20);
});

test('each error of shared limits has the words of its page', async ({ engine }) => {
  const page = await open(engine);
  const visits = page.exported<PipelineDefinition>('visits');
  const rate = { count: 0, perSeconds: 60 };
  page.expectPromised(await messageOf(() => compileSharedLimits(defineSharedLimits({ site: { rate } }))));
  page.expectPromised(
    await messageOf(() =>
      engine.rows(`select millrace.define_limit('site', '{"rate": {"count": 0, "per_seconds": 60}}')`),
    ),
  );
  page.expectPromised(
    await messageOf(() =>
      engine.rows(`select millrace.define_limit('site', '{"key_rate": {"count": 1, "per_seconds": 60}}')`),
    ),
  );
  const misspelt = changed(visits, 'fetch', { limits: { shared: ['sight'] } });
  page.expectPromised(await messageOf(() => engine.define(misspelt)));
  page.expectPromised(await messageOf(() => engine.rows(`select millrace.drop_limit('site')`)));
});
