// A session keeps the plans of the engine's statements, and made them when the tables were small.
import { expect } from 'vitest';
import { chain, test } from '../../support/engine.ts';
import { indexPages } from '../../support/index-pages.ts';
import { planRows } from '../../support/plan-rows.ts';
import { makeNotes } from '../../support/status.ts';
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
