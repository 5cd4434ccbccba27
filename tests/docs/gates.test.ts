import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { definitionOf } from '../support/definitions.ts';
import { type Engine, test } from '../support/engine.ts';
import { changed, messageOf, type OpenPage, testPage } from './page.ts';
import { finish, sweep } from './play.ts';

const open = testPage('gates');

/** Sorts new pages as articles. */
async function sort(engine: Engine, page: OpenPage, count: number): Promise<void> {
  await engine.sql.query(
    `insert into public.listings (url) select 'https://a.test/' || n from generate_series(1, $1) n`,
    [count],
  );
  await finish(engine, page.exported('listings'), 'sort', { kind: 'article' });
}

const states = async (engine: Engine) =>
  Object.fromEntries(
    (await engine.rows('select state, count(*)::int as n from public.listings group by state')).map((row) => [
      row.state,
      row.n,
    ]),
  );

test('sixty a minute, and no more than 300 unfinished behind it', async ({ engine }) => {
  const page = await open(engine);
  await sort(engine, page, 400);
  expect(await states(engine)).toEqual({ sorted: 340, queued: 60 });
  for (let minute = 0; minute < 6; minute++) {
    await engine.advance('1 minute');
    await sweep(engine);
  }
  expect(await states(engine)).toEqual({ sorted: 100, queued: 300 });
  expect(await page.run(engine, 'select stage, enabled, ready')).toMatchObject([
    { stage: 'sort' },
    { stage: 'admit', ready: '100', completed: '300' },
    { stage: 'fetch', ready: '300' },
    { stage: 'read' },
  ]);
  const held = { name: 'admit', held_back_by: 'fetch', backlog: 300 };
  expect(await page.run(engine, 'select s.name')).toContainEqual(held);
});

test('a page that is no article does not wait at the gate', async ({ engine }) => {
  const page = await open(engine);
  await engine.sql.query(
    `insert into public.listings (url) select 'https://a.test/' || n from generate_series(1, 70) n`,
  );
  await finish(engine, page.exported('listings'), 'sort', { kind: 'other' });
  expect(await states(engine)).toEqual({ queued: 70 });
});

test('paused, and slower for an hour', async ({ engine }) => {
  const page = await open(engine);
  await page.run(engine, 'select millrace.pause');
  await sort(engine, page, 10);
  expect(await states(engine)).toEqual({ sorted: 10 });
  await page.run(engine, 'select millrace.unpause');
  await page.run(engine, 'select millrace.throttle');
  await sweep(engine);
  expect(await states(engine)).toEqual({ sorted: 5, queued: 5 });
});

test('each error of gates has the words of its page', async ({ engine }) => {
  const page = await open(engine);
  const pages = page.exported<PipelineDefinition>('listings');
  page.expectPromised(await messageOf(() => changed(pages, 'admit', { limits: { maxInFlight: 3 } })));
  await page.run(engine, 'select millrace.pause');
  await sort(engine, page, 2);
  const { stages, ...rest } = definitionOf(pages) as { stages: { name: string }[] };
  const worked = stages.map((stage) =>
    stage.name === 'admit'
      ? { name: 'admit', needs: ['sort'], shows: { queued: 'sorted', started: 'sorted', completed: 'sorted' } }
      : stage,
  );
  page.expectPromised(await messageOf(() => engine.define({ ...rest, stages: worked })));
  const throttle = `select millrace.throttle('listings', 'admit', '{"max_in_flight": 1}', millrace.now() + interval '1 hour', 'slow')`;
  page.expectPromised(await messageOf(() => engine.sql.query(throttle)));
});
