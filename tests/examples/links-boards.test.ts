// One board must not stop the others, whatever it does.
import { expect } from 'vitest';
import { projectTest as base, type Engine } from '../support/engine.ts';
import { Links } from '../support/examples/links.ts';
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
  let batch: Claimed[] = await worker.take(100);
  while (batch.length > 0) {
    const told = batch.map((item) => completed(item, { classification: 'job', by: 'rule' }));
    batch = (await worker.complete(told, 100)).batch;
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

/** Everything goes on at its true pace for so long: a worker takes what it may, and `slow.test` fails. Returns who was taken. */
async function tenSeconds(engine: Engine, links: Links): Promise<string[]> {
  await engine.advance('10 seconds');
  await engine.sql.query('select millrace.sweep()');
  const worker = await links.worker('scrape_job');
  const batch = await worker.take(50);
  const boards = batch.map(({ entity }) => new URL(entity.raw_url as string).host);
  const failing = batch.filter((_, place) => boards[place] === 'slow.test');
  await worker.report(...failing.map((item) => failed(item, { code: 'server_error' })));
  return boards.filter((board) => board !== 'slow.test');
}
const atTruePace = (engine: Engine) =>
  engine.sql.query(`select millrace.unthrottle_limit('scrapes'), millrace.unthrottle('links', 'route_job')`);

/** How many seconds go by until five links of another board, which come now, are all being scraped. */
async function secondsUntilTaken(engine: Engine, links: Links): Promise<number> {
  await classified(engine, links, 'fast.test', 5);
  let taken = 0;
  for (let seconds = 10; seconds <= 240; seconds += 10) {
    taken += (await tenSeconds(engine, links)).length;
    if (taken === 5) return seconds;
  }
  return Number.POSITIVE_INFINITY;
}

test('five links of another board are taken within two minutes, behind 600 of one that fails', async ({
  engine,
  links,
}) => {
  await atTruePace(engine);
  await classified(engine, links, 'slow.test', 600);
  expect(await secondsUntilTaken(engine, links)).toBeLessThanOrEqual(120);
});

test('five links of another board are taken within two minutes, while 600 that failed are due again', async ({
  engine,
  links,
}) => {
  await classified(engine, links, 'slow.test', 600);
  const worker = await links.worker('scrape_job');
  for (let passes = 0; passes < 3; passes++) {
    let batch = await worker.take(25);
    while (batch.length > 0) {
      batch = (
        await worker.complete(
          batch.map((item) => failed(item, { code: 'server_error' })),
          25,
        )
      ).batch;
    }
    await engine.sql.query('select millrace.sweep()');
  }
  expect(await words(engine)).toEqual(['slow.test error 600']);
  await atTruePace(engine);
  await engine.advance('10 minutes');
  expect(await secondsUntilTaken(engine, links)).toBeLessThanOrEqual(120);
});

test('a board whose links the model is slow to tell leaves others half of the places at it', async ({
  engine,
  links,
}) => {
  const come = (board: string) =>
    engine.sql.query(
      `insert into public.linkedin_links (raw_url) select 'https://' || $1 || '/' || n from generate_series(1, 100) n`,
      [board],
    );
  await come('slow.test');
  const worker = await links.worker('classify');
  expect(await worker.take(20)).toHaveLength(10);
  await come('fast.test');
  expect((await worker.take(20)).map(({ entity }) => new URL(entity.raw_url as string).host)).toEqual(
    Array(10).fill('fast.test'),
  );
});
