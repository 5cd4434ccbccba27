import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import type { PipelineInput } from '../../supabase/functions/_millrace/define/definition-schema.ts';
import { checked, definitionOf } from '../support/definitions.ts';
import { type Engine, type Row, test } from '../support/engine.ts';
import { completed } from '../support/worker.ts';
import { messageOf, type OpenPage, testPage } from './page.ts';
import { claim, start } from './play.ts';

const open = testPage('quotas');

/** Starts audits of an account. */
async function audit(engine: Engine, page: OpenPage, account: string | null, count: number): Promise<void> {
  const rows = await engine.rows(
    `insert into public.audits (account_id, site) select $1, 'site ' || n from generate_series(1, $2) n returning id`,
    [account, count],
  );
  for (const { id } of rows) await start(engine, page.exported('audits'), id);
}

/** Ends what the accounts have at a stage until nothing more may begin, each at this price; returns how many of each. */
async function work(engine: Engine, page: OpenPage, stage: string, usd: number): Promise<Record<string, number>> {
  const done: Record<string, number> = {};
  const { worker, items } = await claim(engine, page.exported('audits'), stage);
  for (let batch = items; batch.length > 0; batch = await worker.take(1000)) {
    for (const { entity } of batch) done[String(entity.account_id)] = (done[String(entity.account_id)] ?? 0) + 1;
    await worker.report(...batch.map((item) => ({ ...completed(item), usage: { cost_usd: usd } })));
  }
  await worker.leave();
  return done;
}

test('200 begin in an hour, and the other account’s meanwhile', async ({ engine }) => {
  const page = await open(engine);
  await audit(engine, page, 'red', 250);
  await audit(engine, page, 'blue', 1);
  const { worker, items } = await claim(engine, page.exported('audits'), 'fetch');
  const taken = items.map(({ entity }) => entity.account_id);
  expect(taken.filter((account) => account === 'red')).toHaveLength(20);
  expect(taken).toContain('blue');
  await worker.report(...items.map((item) => completed(item)));
  await worker.leave();
  expect(await work(engine, page, 'fetch', 0)).toEqual({ red: 180 });
  expect(await page.run(engine, 'select pipeline, key')).toMatchObject([
    {
      key: 'red',
      kind: 'starts',
      used: '200',
      allowed: '200',
      quota_blocked: '50',
      next_at: new Date('2026-11-02T10:00Z'),
    },
    { key: 'blue', used: '1', quota_blocked: '0' },
  ]);
  const error = await engine.value(`select error ->> 'message' from millrace.attempts where quota_blocked limit 1`);
  expect(page.page.text).toContain(error);
  await engine.advance('1 hour');
  expect(await work(engine, page, 'fetch', 0)).toEqual({ red: 50 });
});

test('rows whose column is null or empty share one quota', async ({ engine }) => {
  const page = await open(engine);
  await audit(engine, page, null, 150);
  await audit(engine, page, '', 100);
  const done = await work(engine, page, 'fetch', 0);
  expect(Object.values(done).reduce((sum, count) => sum + count)).toBe(200);
  expect(await page.run(engine, 'select pipeline, key')).toMatchObject([{ key: '', used: '200', quota_blocked: '50' }]);
});

test('five dollars a day', async ({ engine }) => {
  const page = await open(engine);
  await audit(engine, page, 'red', 30);
  expect(await work(engine, page, 'fetch', 0.1)).toEqual({ red: 30 });
  expect(await work(engine, page, 'judge', 0.2), 'twenty were in work when it was used up').toEqual({ red: 20 });
  await engine.advance('15 hours');
  expect(await work(engine, page, 'judge', 0.2)).toEqual({ red: 10 });
});

test('each error of quotas has the words of its page', async ({ engine }) => {
  const page = await open(engine);
  const audits = page.exported<PipelineDefinition>('audits');
  const { entity } = definitionOf(audits) as { entity: PipelineInput['entity'] };
  const withQuota = (quota: Row) =>
    checked({ name: audits.name, entity, quota, stages: audits.stages } as unknown as PipelineInput);
  const starts = { count: 1, perSeconds: 1 };
  const column = 'account_id';
  page.expectPromised(await messageOf(() => withQuota({ column, starts: { ...starts, count: 0 } })));
  page.expectPromised(await messageOf(() => withQuota({ column })));
  page.expectPromised(await messageOf(() => engine.define(definitionOf(withQuota({ column: 'account', starts })))));
});
