// One board must not stop the others, whatever it does.
import { expect } from 'vitest';
import { projectTest as base, type Engine } from '../support/engine.ts';
import { Links } from '../support/links.ts';
import { type Claimed, completed, failed } from '../support/worker.ts';

const test = base.extend<{ links: Links }>({
  links: async ({ engine }, use) => {
    // How fast they go is another matter.
    const wide = { count: 100_000, per_seconds: 60 };
    await engine.sql.query(
      `select millrace.throttle_limit('scrapes', $1, millrace.now() + interval '1 day', 'a test'),
         millrace.throttle('links', 'route_job', $2, millrace.now() + interval '1 day', 'a test')`,
      [JSON.stringify({ rate: wide, key_rate: wide }), JSON.stringify({ rate: wide })],
    );
    await engine.advance('1 minute');
    await use(new Links(engine));
  },
});

/** Inserts jobs of a board and classifies them; the gate passes those that it has room for. */
async function classified(engine: Engine, links: Links, board: string, count: number): Promise<void> {
  await engine.sql.query(
    `insert into public.linkedin_links (raw_url) select 'https://' || $1 || '/jobs/' || n
     from generate_series(1, $2::int) n`,
    [board, count],
  );
  const worker = await links.worker('classify');
  for (let batch: Claimed[] = await worker.take(100); batch.length > 0; batch = await worker.take(100)) {
    await worker.report(...batch.map((item) => completed(item, { classification: 'job', by: 'rule' })));
  }
  await engine.sql.query('select millrace.sweep()');
}
const words = async (engine: Engine) => {
  const rows = await engine.rows<{ board: string; status: string; n: number }>(
    `select split_part(canonical_url, '/', 3) as board, status, count(*)::int as n
     from public.linkedin_links group by 1, 2 order by 1, 2`,
  );
  return rows.map(({ board, status, n }) => `${board} ${status} ${n}`);
};

test('three hundred links of one board in error leave the gate open for every other', async ({ engine, links }) => {
  await classified(engine, links, 'slow.test', 300);
  const worker = await links.worker('scrape_job');
  for (let batch = await worker.take(25); batch.length > 0; batch = await worker.take(25)) {
    await worker.report(...batch.map((item) => failed(item, { code: 'server_error' })));
  }
  expect(await words(engine)).toEqual(['slow.test error 300']);
  await classified(engine, links, 'fast.test', 3);
  expect(await words(engine)).toEqual(['fast.test queued 3', 'slow.test error 300']);
});

test('three hundred links of a board that refuses until tomorrow leave the gate open too', async ({
  engine,
  links,
}) => {
  await classified(engine, links, 'slow.test', 300);
  const worker = await links.worker('scrape_job');
  await worker.report(failed(await worker.takeOne(), { code: 'rate_limited', retry_after_ms: 86_400_000 }));
  await engine.sql.query('select millrace.sweep()');
  await classified(engine, links, 'fast.test', 3);
  expect(await words(engine)).toEqual(['fast.test queued 3', 'slow.test error 1', 'slow.test queued 299']);
  expect((await worker.take(50)).map(({ entity }) => new URL(entity.raw_url as string).host)).toEqual(
    Array(3).fill('fast.test'),
  );
});

test('a board that hangs has half of the places, and the rest are for others', async ({ engine, links }) => {
  await classified(engine, links, 'slow.test', 100);
  const worker = await links.worker('scrape_job');
  expect(await worker.take(50)).toHaveLength(25);
  await classified(engine, links, 'fast.test', 3);
  expect(await worker.take(50)).toHaveLength(3);
});
