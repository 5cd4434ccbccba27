import { expect } from 'vitest';
import type { Stage } from '../../supabase/functions/_millrace/stage/stage.ts';
import { type Engine, test } from '../support/engine.ts';
import { BatchSite } from '../support/runtime/batches.ts';
import { testPage } from './page.ts';

const open = testPage('batch-prices');
const answer = () => JSON.stringify({ tone: 'pleased' });

async function startRemarks(engine: Engine, count: number): Promise<void> {
  await engine.sql.query(
    `with r as (insert into public.remarks (body) select 'remark ' || n from generate_series(1, $1) n returning id)
    select millrace.start('remarks', r.id::text) from r`,
    [count],
  );
}

const answered = (engine: Engine) =>
  engine.rows(`select usage ->> 'batch' as batch, count(*)::int as rows from millrace.attempts
    where state = 'completed' and usage is not null group by 1`);

const errors = (engine: Engine) =>
  engine.rows<{ message: string }>(
    `select distinct error ->> 'message' as message from millrace.attempts where error ->> 'code' in ('batch_expired', 'misconfigured')`,
  );

test('the rows of the page are answered by one batch, and the queries show it', async ({ engine }) => {
  const page = await open(engine);
  const site = await new BatchSite(engine).start({ stage: page.exported<Stage>('judge'), answer });
  await startRemarks(engine, 20);
  await site.untilDone();
  expect(await answered(engine)).toEqual([{ batch: 'true', rows: 20 }]);
  expect(await page.run(engine, 'select id, stage')).toMatchObject([{ status: 'completed', lines: 20 }]);
  expect(Number((await page.run(engine, 'select batch_id'))[0]?.usd)).toBeCloseTo(0.03, 9);
});

test('a row that a batch leaves unanswered is asked directly', async ({ engine }) => {
  const page = await open(engine);
  const plan = () => ({ end: 'expired' as const, answered: 15 });
  const site = await new BatchSite(engine).start({ stage: page.exported<Stage>('judge'), answer, plan });
  await startRemarks(engine, 20);
  await site.untilDone();
  expect(site.provider.calls.direct).toBe(5);
  for (const { message } of await errors(engine)) page.expectPromised(message);
});

test('the pipeline is asked for where it is missing', async ({ engine }) => {
  const page = await open(engine);
  const stage = page.exported<Stage>('judge');
  const site = await new BatchSite(engine).start({ stage, answer, lacksPipeline: true });
  await startRemarks(engine, 1);
  await site.round(site.stages.slice(0, 1));
  const [{ message }] = (await errors(engine)) as [{ message: string }];
  page.expectPromised(message);
});

test('the tables are asked for where they are missing', async ({ engine }) => {
  const page = await open(engine);
  const site = await new BatchSite(engine).start({ stage: page.exported<Stage>('judge'), answer, lacksTables: true });
  await startRemarks(engine, 1);
  await site.round(site.stages.slice(0, 1));
  const [{ message }] = (await errors(engine)) as [{ message: string }];
  page.expectPromised(message);
});
