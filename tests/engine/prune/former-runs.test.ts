// The facts that outlast pruned runs: what they have cost, and the last one of each row.
import { expect } from 'vitest';
import { spawnAll } from '../../support/engine/children.ts';
import { planRows } from '../../support/engine/plan-rows.ts';
import { chain, type Engine, type Row, projectTest as test } from '../../support/engine.ts';
import { completed, Worker } from '../../support/worker.ts';

const account = 'a11ce000-0000-4000-8000-000000000001';

/** Completes what is due at a stage, each attempt at this price. */
async function work(engine: Engine, stage: string, cost: number | undefined, pipeline = 'flow'): Promise<void> {
  const worker = await Worker.of(engine, stage, pipeline);
  const items = await worker.take(1000);
  expect(items.length).toBeGreaterThan(0);
  await worker.complete(
    items.map((item) => ({ ...completed(item), ...(cost === undefined ? {} : { usage: { cost_usd: cost } }) })),
  );
  await worker.leave();
}

/** Lets the time that runs are kept pass, and has them pruned. */
async function pruneAfterDays(engine: Engine, days = 91): Promise<void> {
  await engine.advance(`${days} days`);
  while (await engine.value<boolean>(`select (millrace.prune() ->> 'more')::boolean`));
}

const former = (engine: Engine) =>
  engine.rows('select entity_id, status, costs from millrace.former_runs order by entity_id');

test('the cost of leads stays the same when their runs are pruned, and grows with the next ones', async ({
  engine,
}) => {
  await engine.sql.query(
    `insert into public.leads (email, company_url, account_id) values ('a@b.test', 'http://b.test', $1)`,
    [account],
  );
  const costs = () => engine.value<number>('select cost_usd::float8 from public.lead_costs');
  for (const total of [1, 2, 3]) {
    await engine.sql.query(`update public.leads set scrape_status = 'queued'`);
    await work(engine, 'scrape', undefined, 'leads');
    for (const stage of ['intel', 'strategy', 'subject', 'messaging']) await work(engine, stage, 0.25, 'leads');
    expect(await costs()).toBe(total);
    await pruneAfterDays(engine);
    expect(await engine.value('select count(*)::int from millrace.runs')).toBe(0);
    expect(await costs()).toBe(total);
  }
  await engine.sql.query('delete from public.leads');
  expect(await former(engine)).toEqual([]);
});

test('a book keeps what its pages have cost, counted once', async ({ engine }) => {
  const book = await engine.value<string>(
    `insert into public.books (account_id, title, source_path) values ($1::uuid, 'b', $1::text || '/b.txt') returning id`,
    [account],
  );
  await engine.sql.query(`select millrace.start('books', $1)`, [book]);
  await spawnAll(
    engine,
    [1, 2].map((key) => ({ key: `${key}`, of: 2 })),
    'split',
    'books',
  );
  await work(engine, 'text_layer', 0.5, 'pages');
  await work(engine, 'blend', undefined, 'pages');
  await work(engine, 'label', 0.25, 'pages');
  await engine.sql.query(`select millrace.cancel(id) from millrace.runs where status = 'running' order by id`);
  const costs = () => engine.value<number>('select cost_usd::float8 from public.book_costs');
  expect(await costs()).toBe(1.5);
  await pruneAfterDays(engine);
  expect(await engine.value('select count(*)::int from millrace.runs')).toBe(0);
  expect(await costs()).toBe(1.5);
  expect((await former(engine)).filter(({ entity_id }) => entity_id === book)).toHaveLength(1);
});

test('a document keeps its job, with what its phases have cost, and is shown its next run once it has one', async ({
  engine,
}) => {
  const id = await engine.value<string>(
    `insert into public.document (source_path, metadata)
     values ('org_red/f.txt', '{"clerk_org_id": "org_red", "source_name": "f.txt"}') returning id`,
  );
  await engine.sql.query('update public.document_way set share = 1');
  await engine.sql.query(`update public.document set extraction_status = 'queued'`);
  const end = async (stage: string, cost: number, result: Row) => {
    const worker = await Worker.of(engine, stage, 'documents');
    const item = await worker.takeOne();
    await worker.report({ ...completed(item, result), usage: { cost_usd: cost } });
  };
  await end('extraction', 0.5, { text_location: 'extracted_text/x', by: 'pdf' });
  await engine.sql.query(`select millrace.cancel(id) from millrace.runs where status = 'running'`);
  const job = async () => (await engine.rows('select * from public.pipeline_job'))[0] as Row;
  const before = await job();
  expect(before).toMatchObject({ status: 'failed', metadata: { cost_usd: { extraction: 0.5 }, total_cost_usd: 0.5 } });
  await pruneAfterDays(engine);
  expect(await engine.rows('select from public.pipeline_phase')).toEqual([]);
  const after = await job();
  // Which phase it had come to went with the phases.
  expect(after).toEqual({ ...before, current_phase: null, updated_at: after.completed_at });
  expect(after.metadata).toMatchObject({ source_name: 'f.txt' });
  expect(await engine.rows('select documents::int, cost_usd::float8 from public.document_costs')).toEqual([
    { documents: 1, cost_usd: 0.5 },
  ]);
  await engine.sql.query(`update public.document set extraction_status = 'queued' where id = $1`, [id]);
  await end('extraction', 0.25, { text_location: 'extracted_text/x', by: 'pdf' });
  expect(await job()).toMatchObject({
    status: 'processing',
    current_phase: 'chunking',
    metadata: { cost_usd: { extraction: 0.75 }, total_cost_usd: 0.75 },
  });
});

test('a row keeps one former run, the last, and none of another’s', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const [first, second] = (await engine.queued('one', 2)) as [string, string];
  await work(engine, 'one', 0.5);
  await engine.advance('1 day');
  await engine.queue('one', [first]);
  await work(engine, 'one', undefined);
  const { id: last } = await engine.run(first);
  await pruneAfterDays(engine);
  expect(await former(engine)).toEqual([
    { entity_id: first, status: 'completed', costs: { one: 0.5 } },
    { entity_id: second, status: 'completed', costs: { one: 0.5 } },
  ]);
  expect(await engine.value('select run_id from millrace.former_runs where entity_id = $1', [first])).toBe(last);
  await engine.sql.query('truncate public.items');
  expect(await former(engine)).toEqual([]);
});

test('a row that an apply function deletes costs the same however many others have had runs', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await engine.sql.query(`
    insert into millrace.former_runs (pipeline_id, entity_id, run_id, status, costs, created_at)
      select p.id, n::text, n, 'completed', '{}', millrace.now() from millrace.pipelines p, generate_series(1, 3000) n
      where p.name = 'flow';
    analyze millrace.former_runs;
    insert into public.items (label) values ('a')`);
  // As worker calls are planned.
  const planned = 'set enable_seqscan = off; set plan_cache_mode = force_generic_plan';
  expect(await planRows(engine.database.superUrl, `${planned}; delete from public.items`)).toBeLessThan(100);
});
