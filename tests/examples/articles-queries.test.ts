// The queries of the articles' documentation, and the views that say where articles pile up, for how long, and what is ready.
import { expect } from 'vitest';
import { type Articles, complete, test } from '../support/articles.ts';
import type { Engine } from '../support/engine.ts';

/** Articles at rest at 100, 110, 120, 200, 220, 300, 310, 400, 520 and 540. */
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

test('what is ready is what a stage can take: no gate, no review and nothing published', async ({
  articles,
  engine,
}) => {
  const ids = await spread(articles);
  const ready = await engine.rows('select id, status_code, name from public.article_ready order by status_code');
  expect(ready).toEqual([
    { id: ids.get(110), status_code: 110, name: 'to_fetch' },
    { id: ids.get(120), status_code: 120, name: 'to_score' },
    { id: ids.get(220), status_code: 220, name: 'to_tag' },
  ]);
});

test('where articles pile up is told with the oldest there', async ({ articles, engine }) => {
  const first = await articles.reviewed();
  const second = await articles.reviewed();
  await articles.reviewed(310);
  await sinceDaysAgo(engine, first, 3);
  await sinceDaysAgo(engine, second, 2);
  expect(
    await engine.rows('select code, name, category, articles, oldest_id from public.article_backlog order by code'),
  ).toEqual([
    { code: 300, name: 'pending_review', category: 'review', articles: '2', oldest_id: first },
    { code: 310, name: 'in_review', category: 'review', articles: '1', oldest_id: expect.any(String) },
  ]);
});

const sinceDaysAgo = (engine: Engine, id: string, days: number) =>
  engine.rows(`update public.ingestion_queue set status_changed_at = now() - make_interval(days => $2) where id = $1`, [
    id,
    days,
  ]);

test('how long articles stand at a code is told by median and 95th percentile, months included', async ({
  articles,
  engine,
}) => {
  const id = await articles.reviewed();
  await engine.rows(
    `insert into public.status_history (queue_id, from_status, to_status, duration_ms)
     select $1, 300, 310, case when n = 101 then 90::bigint * 24 * 3600 * 1000 else n * 10 end from generate_series(1, 101) n`,
    [id],
  );
  await engine.rows(
    `insert into public.status_history (queue_id, from_status, to_status, duration_ms, changed_at)
     values ($1, 300, 310, 1, now() - interval '8 days')`,
    [id],
  );
  expect(await engine.rows('select * from public.article_state_times')).toEqual([
    { code: 300, name: 'pending_review', left_it: '101', p50_ms: 510, p95_ms: 960, longest_ms: '7776000000' },
  ]);
});
