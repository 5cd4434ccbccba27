// One status column shows where a row's run stands.
import { expect } from 'vitest';
import { makeLinks } from '../../support/engine/status.ts';
import { type Engine, test } from '../../support/engine.ts';
import { completed, failed, released, resume, runStage, Worker, waiting } from '../../support/worker.ts';

async function insert(engine: Engine, label = 'a'): Promise<string> {
  return engine.value<string>(`insert into public.link (label, status) values ($1, 'new') returning id`, [label]);
}

async function shown(engine: Engine, id: string) {
  const [row] = await engine.rows(
    'select status, attempt_count, next_attempt_at, last_error from public.link where id = $1',
    [id],
  );
  return row;
}

test('a chain shows each stage as queued, started and completed, and jobs that wait as started', async ({ engine }) => {
  await makeLinks(engine);
  const id = await insert(engine);
  const classifier = await Worker.of(engine, 'classify', 'page_links');
  const item = await classifier.takeOne();
  expect((await shown(engine, id))?.status).toBe('classifying');
  expect(item.entity).toEqual({ id: Number(id), label: 'a' });
  await classifier.report(completed(item));
  expect((await shown(engine, id))?.status).toBe('classified');
  const scraper = await Worker.of(engine, 'scrape', 'page_links');
  const job = await scraper.takeOne();
  await scraper.report(waiting(job, 'job-1'));
  expect((await shown(engine, id))?.status).toBe('scraping');
  await resume(engine, [
    { submission: job.submission, service: 'scraper', job_id: 'job-1', outcome: 'completed', result: {} },
  ]);
  expect((await shown(engine, id))?.status).toBe('scraped');
  await engine.expectSound();
  await runStage(engine, 'extract', 'page_links');
  expect(await shown(engine, id)).toEqual({
    status: 'extracted',
    attempt_count: 0,
    next_attempt_at: null,
    last_error: null,
  });
});

test('a stage whose condition does not hold shows nothing, and the run its last completed stage', async ({
  engine,
}) => {
  await makeLinks(engine);
  const id = await insert(engine, 'empty');
  await runStage(engine, 'classify', 'page_links');
  await runStage(engine, 'scrape', 'page_links');
  expect((await shown(engine, id))?.status).toBe('scraped');
  expect((await engine.run(id)).status).toBe('completed');
});

test('a failure shows attempts, due time and error while it is in backoff, and the sweep shows it as queued when it is due', async ({
  engine,
}) => {
  await makeLinks(engine);
  const id = await insert(engine);
  const worker = await Worker.of(engine, 'classify', 'page_links');
  await worker.report(failed(await worker.takeOne()));
  expect(await shown(engine, id)).toEqual({
    status: 'error',
    attempt_count: 1,
    next_attempt_at: new Date('2026-11-02T09:01:00Z'),
    last_error: 'it took too long',
  });
  await engine.sql.query('select millrace.sweep()');
  expect((await shown(engine, id))?.status).toBe('error');
  await engine.advance('61 seconds');
  await engine.sql.query('select millrace.sweep()');
  expect(await shown(engine, id)).toMatchObject({ status: 'new', attempt_count: 1, last_error: 'it took too long' });
  await worker.report(failed(await worker.takeOne()));
  expect(await shown(engine, id)).toMatchObject({ status: 'error', attempt_count: 2 });
  await engine.advance('10 minutes');
  const last = await worker.takeOne();
  expect(await shown(engine, id)).toMatchObject({ status: 'classifying', attempt_count: 2, next_attempt_at: null });
  await worker.report(failed(last, { message: 'no use' }));
  expect(await shown(engine, id)).toEqual({
    status: 'dead',
    attempt_count: 3,
    next_attempt_at: null,
    last_error: 'no use',
  });
});

test('a failure for good shows the value of its code, and a cancelled run that of failures', async ({ engine }) => {
  await makeLinks(engine);
  const [gone, cancelled] = [await insert(engine), await insert(engine)];
  await runStage(engine, 'classify', 'page_links');
  const worker = await Worker.of(engine, 'scrape', 'page_links');
  await worker.report(failed(await worker.takeOne(), { code: 'not_found', permanent: true }));
  expect((await shown(engine, gone))?.status).toBe('gone');
  await engine.sql.query('select millrace.cancel($1)', [(await engine.run(cancelled)).id]);
  expect(await shown(engine, cancelled)).toMatchObject({ status: 'dead', last_error: 'cancelled' });
});

test('a row that a worker hands back shows as queued again', async ({ engine }) => {
  await makeLinks(engine);
  const id = await insert(engine);
  const worker = await Worker.of(engine, 'classify', 'page_links');
  await worker.report(released(await worker.takeOne()));
  expect((await shown(engine, id))?.status).toBe('new');
});

test('a ready value starts a stage over, and a failed run goes on from it', async ({ engine }) => {
  await makeLinks(engine);
  const id = await insert(engine);
  const worker = await Worker.of(engine, 'classify', 'page_links');
  const old = await worker.takeOne();
  await engine.sql.query(`update public.link set status = 'new' where id = $1`, [id]);
  expect(await worker.report(completed(old))).toEqual(['stale']);
  await worker.report(completed(await worker.takeOne()));
  const scraper = await Worker.of(engine, 'scrape', 'page_links');
  await scraper.report(failed(await scraper.takeOne(), { permanent: true }));
  expect(await shown(engine, id)).toMatchObject({ status: 'dead', attempt_count: 1 });
  await engine.sql.query(`update public.link set status = 'classified' where id = $1`, [id]);
  expect(await shown(engine, id)).toEqual({
    status: 'classified',
    attempt_count: 0,
    next_attempt_at: null,
    last_error: null,
  });
  await runStage(engine, 'scrape', 'page_links');
  await runStage(engine, 'extract', 'page_links');
  expect((await shown(engine, id))?.status).toBe('extracted');
});

test('calls of operators are shown: start, retry, reset and skip', async ({ engine }) => {
  await makeLinks(engine);
  const id = await engine.value<string>(`insert into public.link (label) values ('a') returning id`);
  await engine.sql.query(`select millrace.start('page_links', $1)`, [id]);
  expect((await shown(engine, id))?.status).toBe('new');
  const run = (await engine.run(id)).id;
  await engine.sql.query('select millrace.skip($1, $2)', [run, 'classify']);
  expect((await shown(engine, id))?.status).toBe('classified');
  const worker = await Worker.of(engine, 'scrape', 'page_links');
  await worker.report(failed(await worker.takeOne(), { permanent: true }));
  expect((await shown(engine, id))?.status).toBe('dead');
  await engine.sql.query('select millrace.retry($1)', [run]);
  expect(await shown(engine, id)).toMatchObject({ status: 'classified', attempt_count: 0, last_error: null });
  await engine.sql.query('select millrace.reset($1)', [run]);
  expect((await shown(engine, id))?.status).toBe('new');
  await engine.sql.query('select millrace.skip($1, $2)', [run, 'classify']);
  await engine.sql.query('select millrace.skip($1, $2)', [run, 'scrape']);
  expect((await shown(engine, id))?.status).toBe('scraped');
  await engine.sql.query('select millrace.skip($1, $2)', [run, 'extract']);
  expect((await shown(engine, id))?.status).toBe('extracted');
});

test('a claim of a row that somebody holds is shown when its stage is done', async ({ engine }) => {
  await makeLinks(engine);
  const id = await insert(engine);
  const holder = await engine.database.connect();
  await holder.query('begin');
  await holder.query('select from public.link where id = $1 for update', [id]);
  const worker = await Worker.of(engine, 'classify', 'page_links');
  const item = await worker.takeOne();
  expect((await shown(engine, id))?.status).toBe('new');
  await holder.query('commit');
  await engine.expectSound();
  await worker.report(completed(item));
  expect((await shown(engine, id))?.status).toBe('classified');
});

test('one batch writes each row’s own status', async ({ engine }) => {
  await makeLinks(engine);
  const ids = [await insert(engine), await insert(engine, 'empty'), await insert(engine), await insert(engine)];
  await runStage(engine, 'classify', 'page_links');
  const worker = await Worker.of(engine, 'scrape', 'page_links');
  const [a, b, c, d] = await worker.take();
  if (!a || !b || !c || !d) throw new Error('nothing claimed');
  await worker.report(completed(a), completed(b), failed(c), failed(d, { code: 'not_found', permanent: true }));
  const rows = await engine.rows('select status from public.link where id = any ($1) order by id', [ids]);
  expect(rows.map(({ status }) => status)).toEqual(['scraped', 'scraped', 'error', 'gone']);
});
