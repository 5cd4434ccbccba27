// The queries of the articles' documentation, and the views that say where articles pile up, for how long, and what is ready.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { expect } from 'vitest';
import { planRows } from '../support/engine/plan-rows.ts';
import { type Articles, complete, curatorClaims, test } from '../support/examples/articles.ts';

/** Articles that entered at 100, 110, 120, 200, 220, 300 and 520, and some at 310, 400 and 540; those of 100 and 200 go on. */
async function spread(articles: Articles): Promise<Map<number, string>> {
  const content = 'A text that is long enough to be told from others, more or less.';
  const inserted = [
    { url: 'https://looms.test/100' },
    { url: 'https://looms.test/110', entry_type: 'manual' },
    { content: `${content} 120`, entry_type: 'import' },
    { content: `${content} 200`, entry_type: 'manual' },
    { summary: 'A summary', entry_type: 'manual' },
    complete,
    { url: 'https://looms.test/100' },
  ];
  const ids = new Map<number, string>();
  for (const values of inserted) {
    const row = await articles.insert(values);
    ids.set(row.status_code as number, row.id);
  }
  ids.set(310, await articles.reviewed(310));
  ids.set(540, await articles.reviewed(310, 540));
  ids.set(400, (await articles.published()).id);
  return ids;
}

test('the documented queries run as they are written', async ({ articles, engine }) => {
  const ids = await spread(articles);
  await engine.sql.query('set search_path = public');
  const found = async (where: string) =>
    (await engine.rows<{ id: string }>(`SELECT * FROM ingestion_queue WHERE ${where};`)).map(({ id }) => id).sort();
  const at = (...codes: number[]) => codes.map((code) => ids.get(code)).sort();
  expect(await found('status_code BETWEEN 200 AND 299')).toEqual(at(200, 220));
  expect(await found('status_code >= 500')).toEqual(at(520, 540));
  expect(await found('status_code % 10 = 0 AND status_code < 500')).toEqual(at(100, 110, 120, 200, 220, 300, 310, 400));
  const times = await engine.rows(
    `SELECT
       sl.name,
       AVG(sh.duration_ms) as avg_duration_ms,
       COUNT(*) as transitions
     FROM status_history sh
     JOIN status_lookup sl ON sl.code = sh.from_status
     GROUP BY sl.name
     ORDER BY avg_duration_ms DESC;`,
  );
  expect(times).toContainEqual({ name: 'in_review', avg_duration_ms: expect.any(String), transitions: '2' });
  await engine.sql.query('reset search_path');
});

test('an article is ready where a stage can take it: at no gate, in no review and not published', async ({
  articles,
  engine,
}) => {
  const ids = await spread(articles);
  const ready = await engine.rows('select id, status_code, name from public.article_ready order by status_code, id');
  expect(ready).toEqual([
    ...[ids.get(100), ids.get(110)].sort().map((id) => ({ id, status_code: 110, name: 'to_fetch' })),
    { id: ids.get(120), status_code: 120, name: 'to_score' },
    { id: ids.get(200), status_code: 210, name: 'to_summarize' },
    { id: ids.get(220), status_code: 220, name: 'to_tag' },
  ]);
});

test('where articles pile up is told with the oldest there', async ({ articles, engine }) => {
  const first = await articles.reviewed();
  await engine.advance('1 day');
  await articles.reviewed();
  await articles.reviewed(310);
  const since = new Date('2026-11-02T09:00:00Z');
  expect(await engine.rows('select * from public.article_backlog order by code')).toEqual([
    {
      code: 300,
      name: 'pending_review',
      category: 'review',
      articles: '2',
      oldest_since: since,
      oldest_id: first,
      more: false,
    },
    expect.objectContaining({ code: 310, name: 'in_review', articles: '1' }),
  ]);
});

test('of a step where more than a thousand stand it counts those that entered first, and reads no more', async ({
  articles,
  engine,
}) => {
  const first = await articles.reviewed();
  await articles.reviewed(310);
  const fill = (from: number, to: number) =>
    engine.sql.query(
      `insert into public.ingestion_queue (entry_type, url) select 'manual', 'https://looms.test/' || n
       from generate_series(${from}, ${to}) n`,
    );
  await fill(1, 1200);
  const backlog = 'select code, articles::int, more, oldest_id from public.article_backlog order by code';
  expect(await engine.rows(backlog)).toEqual([
    { code: 110, articles: 1000, more: true, oldest_id: expect.any(String) },
    { code: 300, articles: 1, more: false, oldest_id: first },
    { code: 310, articles: 1, more: false, oldest_id: expect.any(String) },
  ]);
  await engine.sql.query('analyze public.ingestion_queue');
  const few = await planRows(engine.database.superUrl, backlog);
  await fill(1201, 6000);
  await engine.sql.query('analyze public.ingestion_queue');
  expect(await planRows(engine.database.superUrl, backlog)).toBeLessThanOrEqual(few + 100);
});

test('a user who is no curator counts their own articles, and reads no others for that', async ({
  articles,
  engine,
}) => {
  await articles.reviewed();
  const user = await engine.database.connect('authenticated', { sub: randomUUID() });
  const curator = await engine.database.connect('authenticated', curatorClaims('rick'));
  const project = await engine.database.connect('service_role');
  await articles.insert({ url: 'https://looms.test/own', entry_type: 'manual' }, user);
  const counted = async (client: pg.Client) =>
    (await client.query('select code from public.article_backlog order by code')).rows.map(({ code }) => code);
  expect([await counted(user), await counted(curator), await counted(project)]).toEqual([
    [110],
    [110, 300],
    [110, 300],
  ]);
  await engine.sql.query(
    `insert into public.ingestion_queue (entry_type, url) select 'manual', 'https://looms.test/' || n
     from generate_series(1, 3000) n;
     analyze public.ingestion_queue`,
  );
  const { rows } = await user.query('explain (analyze, format json) select * from public.article_backlog');
  const read = [...JSON.stringify(rows).matchAll(/"(?:Actual Rows|Rows Removed by Filter)":(\d+)/g)];
  expect(Math.max(...read.map(([, count]) => Number(count)))).toBeLessThan(200);
});

test('how long articles stood at a code is told of those that left it in the last seven days, months included', async ({
  articles,
  engine,
}) => {
  const [one, two, three] = [await articles.reviewed(), await articles.reviewed(), await articles.reviewed()];
  const minute = 60_000;
  for (const id of [one, two]) {
    await engine.advance('10 minutes');
    await articles.move(id, 310);
  }
  const times = () => engine.rows('select * from public.article_state_times');
  const left = { code: 300, name: 'pending_review' };
  expect(await times()).toEqual([
    { ...left, left_it: '2', p50_ms: 15 * minute, p95_ms: 19.5 * minute, longest_ms: `${20 * minute}` },
  ]);
  await engine.advance('90 days');
  await articles.move(three, 310);
  const months = 90 * 24 * 60 * minute + 20 * minute;
  expect(await times()).toEqual([{ ...left, left_it: '1', p50_ms: months, p95_ms: months, longest_ms: `${months}` }]);
});
