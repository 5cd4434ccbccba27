// A session keeps the plans of the engine's statements, and made them when the tables were small.
import { expect } from 'vitest';
import { indexPages } from '../../support/engine/index-pages.ts';
import { planRows } from '../../support/engine/plan-rows.ts';
import { makeNotes } from '../../support/engine/status.ts';
import { chain, test } from '../../support/engine.ts';
import { completed, runStage, Worker } from '../../support/worker.ts';

test('a worker whose plans are of a time when there were few runs does not walk an index of many', async ({
  engine,
}) => {
  await engine.pipeline(chain(['first', 'second'], { max_workers: 5 }));
  await engine.queued('first', 20);
  await engine.sql.query('vacuum analyze millrace.runs, millrace.attempts');
  const worker = await Worker.of(engine, 'first');
  const pages = () =>
    indexPages(engine, worker.client, 'millrace.runs', async () =>
      worker.complete((await worker.take(10)).map((item) => completed(item))),
    );
  const few = await pages();
  await engine.queued('first', 10_000);
  const many = await pages();
  expect(few).toBeGreaterThan(0);
  // A tree of so many is a page or two deeper; all of it has a hundred pages and more.
  expect(many).toBeLessThan(few + 100);
});

test.for([
  [
    'a failure that a run goes on without',
    { on_failure: 'continue' },
    '{"outcome": "failed", "error": {"permanent": true}}',
  ],
  ['an ending', { ends: [{ name: 'good', when: '$.result.a == 1' }] }, '{"outcome": "completed", "result": {"a": 1}}'],
] as const)(
  '%s looks at each run once, by plans of a time when there were few: %s',
  async ([, options, outcome], { engine }) => {
    await engine.pipeline([
      { name: 'first', ...options },
      { name: 'second', needs: ['first'] },
    ]);
    await engine.sql.query('vacuum analyze');
    const work = (count: number) => `
    insert into public.items (first_status) select 'queued' from generate_series(1, ${count});
    select pg_temp.work(${count})`;
    const rows = (count: number) =>
      planRows(
        engine.database.superUrl,
        `create function pg_temp.work(p_count int) returns json language plpgsql as $$
       declare v_worker uuid := gen_random_uuid();
         v_batch json := public.millrace_claim('flow', 'first', v_worker, v_worker, 1, p_count) -> 'batch';
       begin
         return public.millrace_complete(v_worker, 2, (select json_agg(jsonb_build_object(
           'attempt', b -> 'attempt', 'token', b -> 'token') || '${outcome}') from json_array_elements(v_batch) b), 0, true);
       end $$; ${work(1)}; ${work(1)}; ${work(count)}`,
      );
    const [few, many] = [await rows(100), await rows(400)];
    expect(few).toBeGreaterThan(1000);
    expect(many).toBeLessThan(few * 6);
  },
);

test.for([
  ['deleted', 'delete from public.items where id = $1'],
  ['cancelled', 'select millrace.cancel($1)'],
])(
  'what is %s costs the same beside many attempts, by plans of a time when there were few',
  async ([, statement], { engine }) => {
    await engine.pipeline([{ name: 'first' }]);
    await engine.sql.query('vacuum analyze');
    await engine.queued('first', 3);
    const pages = (id: number) =>
      indexPages(engine, engine.sql, 'millrace.attempts', () => engine.sql.query(statement as string, [id]));
    await pages(1);
    const few = await pages(2);
    await engine.queued('first', 10_000);
    expect(await pages(3)).toBeLessThan(few + 20);
  },
);

test('decisions are taken without a walk through all attempts, by plans of a time when they were few', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'ask', kind: 'manual', decision: { schema: {} } }]);
  await engine.sql.query('vacuum analyze millrace.runs, millrace.attempts, public.millrace_decisions');
  await engine.queued('ask', 900);
  const decide = 'update public.millrace_decisions set decision = $${}$$ where attempt_id <=';
  const rows = (first: number, last: number) =>
    planRows(
      engine.database.superUrl,
      `${decide} ${first} and decided_at is null; ${decide} ${last} and decided_at is null`,
    );
  const few = await rows(1, 51);
  const many = await rows(52, 452);
  expect(few).toBeGreaterThan(500);
  expect(many).toBeLessThan(few * 10);
});

test('a bulk update in a session that has updated one row before looks at each row once', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second']));
  await engine.insert(800);
  const rows = (count: number) =>
    planRows(
      engine.database.superUrl,
      `update public.items set label = 'one' where id = 1; update public.items set label = 'all' where id <= ${count}`,
    );
  const [few, many] = [await rows(200), await rows(800)];
  expect(few).toBeGreaterThan(200);
  expect(many).toBeLessThan(few * 6);
});

test('starting over in live runs beside new ones looks at each row once', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second']));
  await engine.queued('first', 800);
  await runStage(engine, 'first');
  await engine.insert(800);
  const rows = (half: number) =>
    planRows(
      engine.database.superUrl,
      `update public.items set first_status = 'queued' where id <= ${half} or id > 800 and id <= ${800 + half}`,
    );
  const [few, many] = [await rows(200), await rows(800)];
  expect(few).toBeGreaterThan(400);
  expect(many).toBeLessThan(few * 6);
  // All of it went both ways.
  expect(await engine.value(`select count(*)::int from millrace.attempts where superseded`)).toBe(1600);
  expect(await engine.value('select count(*)::int from millrace.runs')).toBe(1600);
});

test('rows that enter in bulk, in a session and in tables that knew none, are each looked at once', async ({
  engine,
}) => {
  await makeNotes(engine, (definition) => {
    for (const stage of definition.stages) Object.assign(stage, { given: `$.entity.title == "${stage.name}"` });
  });
  await engine.sql.query('vacuum analyze');
  const enter = (count: number) =>
    `insert into public.note (label, status_code) select 'many', 100 from generate_series(1, ${count})`;
  const rows = (count: number) => planRows(engine.database.superUrl, `${enter(1)}; ${enter(count)}; ${enter(count)}`);
  const [few, many] = [await rows(200), await rows(800)];
  expect(few).toBeGreaterThan(400);
  expect(many).toBeLessThan(few * 6);
  expect(await engine.value(`select count(*)::int from millrace.attempts where state = 'queued'`)).toBe(2002);
});

test('the latest run of a row is looked up, by plans of a time when one row had had all runs', async ({ engine }) => {
  await engine.pipeline([{ name: 'first' }]);
  const runs = (rows: number) =>
    engine.sql.query(
      `with made as (
         insert into millrace.runs (pipeline_id, version_id, entity_id, status, created_at, finished_at)
         select p.id, p.current_version_id, n % $1, 'cancelled', millrace.now(), millrace.now()
         from millrace.pipelines p, generate_series(1, 1000) n
         returning pipeline_id)
       insert into millrace.pulses (at, pipeline_id, stage_id, outcome, n)
       select millrace.now(), m.pipeline_id, 0, 'cancelled', count(*) from made m group by 2`,
      [rows],
    );
  await runs(1);
  await engine.sql.query('vacuum analyze millrace.runs');
  await runs(1000);
  expect(await planRows(engine.database.superUrl, 'select millrace.is_latest_run(1001)')).toBeLessThan(10);
});
