// The events that links record: events once each, words with who and why, and what people do by playbook.
import { expect } from 'vitest';
import { projectTest as base } from '../support/engine.ts';
import { extractedJob, Links, stagedJob } from '../support/examples/links.ts';
import { type Claimed, failed } from '../support/worker.ts';

const test = base.extend<{ links: Links }>({
  links: async ({ engine }, use) => use(new Links(engine)),
});
const events = (links: Links, id: string) =>
  links.engine.rows<{ event: string }>('select event from public.link_events where link_id = $1 order by id', [id]);
const names = async (links: Links, id: string) => (await events(links, id)).map(({ event }) => event);

/** Brings the one link that waits to its end. */
async function extract(links: Links, job = 'one'): Promise<void> {
  await links.scrape('scrape_job', job);
  await links.finish('stage_job', stagedJob());
  await links.finish('extract', extractedJob());
}

test('the events of a link are found by its id, each once, whatever keys other pipelines have', async ({
  engine,
  links,
}) => {
  await engine.sql.query(`
    create table public.items (id uuid primary key default gen_random_uuid(), label text)`);
  await engine.pipeline([{ name: 'one' }]);
  await engine.sql.query(`insert into public.items (one_status) values ('queued')`);
  const id = await links.add('https://a.test/jobs/1');
  await links.classify('job');
  await extract(links);
  expect(await names(links, id)).toEqual(['link.new', 'link.classified', 'raw.persisted', 'staged.persisted']);
  expect(
    await engine.value(
      'select bool_and(e.trace_id = l.trace_id) from public.link_events e join public.linkedin_links l on l.id = link_id',
    ),
  ).toBe(true);
});

test('a link that is started over repeats no event of what is not done again', async ({ links }) => {
  const id = await links.add('https://a.test/jobs/1');
  await links.classify('job');
  await extract(links);
  await links.write(id, 'staged');
  await links.finish('extract', extractedJob());
  await links.write(id, 'queued');
  await links.scrape('scrape_job', 'two');
  // The page says what it said before, so that the model is not asked.
  await links.finish('stage_job', stagedJob());
  expect(await names(links, id)).toEqual([
    'link.new',
    'link.classified',
    'raw.persisted',
    'staged.persisted',
    'raw.persisted',
    'staged.persisted',
  ]);
});

test('of several spellings in a sheet the first is kept', async ({ engine }) => {
  const source = await engine.value(
    `insert into public.link_sources (kind, address) values ('sheet', 'https://docs.google.com/spreadsheets/d/x')
     returning id`,
  );
  const spellings = ['https://www.a.test/jobs/1?utm_source=z', 'https://a.test/jobs/1', 'http://a.test/jobs/1/'];
  const links = spellings.map((url, row) => ({ url, place: `Sheet1!A${row + 1}` }));
  await engine.rows('select public.save_links($1, $2, null, $3)', [source, JSON.stringify(links), '{}']);
  expect(await engine.rows('select raw_url, source_place from public.linkedin_links')).toEqual([
    { raw_url: spellings[0], source_place: 'Sheet1!A1' },
  ]);
});

test('events stay when runs are pruned, and go with their link', async ({ engine, links }) => {
  const id = await links.add('https://a.test/jobs/1');
  await links.classify('job');
  await extract(links);
  await engine.advance('100 days');
  await engine.sql.query('select millrace.prune()');
  expect(await engine.value('select count(*)::int from millrace.runs')).toBe(0);
  expect(await names(links, id)).toHaveLength(4);
  await engine.sql.query('delete from public.linkedin_links');
  expect(await names(links, id)).toEqual([]);
});

test('a secret key reads queues, events and words, and writes none of them', async ({ engine, links }) => {
  const id = await links.add('https://a.test/jobs/1');
  await engine.sql.query('set role service_role');
  expect(await engine.rows(`select queue, ready::int from public.link_queues where queue = 'classify'`)).toEqual([
    { queue: 'classify', ready: 1 },
  ]);
  expect(await names(links, id)).toEqual(['link.new']);
  expect(await engine.rows('select to_status, changed_by from public.link_history')).toHaveLength(1);
  await expect(engine.sql.query('delete from public.link_events')).rejects.toMatchObject({ code: '42501' });
  await expect(engine.sql.query('delete from public.link_history')).rejects.toMatchObject({ code: '42501' });
  await engine.sql.query('reset role');
});

test('playbook A: who put a dead link back, and why, stands in its history', async ({ engine, links }) => {
  const id = await links.add('https://a.test/jobs/1');
  await links.classify('job');
  const worker = await links.worker('scrape_job');
  await worker.report(failed(await worker.takeOne(), { code: 'removed', message: 'it is gone', permanent: true }));
  await engine.sql.query(
    `update public.linkedin_links set status = 'queued', note = '{"why": "the board is back"}'
     where canonical_url = public.canonical_url('http://www.a.test/jobs/1/?utm_source=x')`,
  );
  expect(await links.row(id)).toMatchObject({ status: 'queued', last_error: null, note: null });
  expect(
    await engine.rows(
      `select from_status, to_status, changed_by, changes from public.link_history
       where link_id = $1 order by id desc limit 1`,
      [id],
    ),
  ).toEqual([
    {
      from_status: 'dead',
      to_status: 'queued',
      changed_by: 'user:postgres',
      changes: { why: 'the board is back' },
    },
  ]);
});

test('each stage counts what was enqueued, started and came of it, whatever became of the links', async ({
  engine,
  links,
}) => {
  const counted = (stage: string) =>
    engine.rows(
      `select enqueued::int, started::int, succeeded::int, failed::int, retries::int, dead::int
       from public.link_counters where stage = $1`,
      [stage],
    );
  const ids: string[] = [];
  for (const n of [1, 2, 3, 4]) ids.push(await links.add(`https://a.test/jobs/${n}`));
  expect(await counted('classify')).toEqual([
    { enqueued: 4, started: 0, succeeded: 0, failed: 0, retries: 0, dead: 0 },
  ]);
  for (const _ of ids) await links.classify('job');
  const worker = await links.worker('scrape_job');
  const { batch } = await worker.claim(3);
  expect(await counted('scrape_job')).toEqual([
    { enqueued: 4, started: 3, succeeded: 0, failed: 0, retries: 0, dead: 0 },
  ]);
  const [again, gone, taken] = batch as [Claimed, Claimed, Claimed];
  await worker.report(failed(again), failed(gone, { code: 'removed', message: 'gone', permanent: true }));
  // A link in work starts over, and a waiting one is given up.
  await links.write(taken.entity_id, 'queued');
  const waits = ids.find((id) => !batch.some(({ entity_id }) => entity_id === id)) as string;
  await links.write(waits, 'dead');
  const after = { enqueued: 6, started: 3, succeeded: 0, failed: 3, retries: 1, dead: 2 };
  expect(await counted('scrape_job')).toEqual([after]);
  await engine.sql.query(`select millrace.bypass('links', 'scrape_job', 'the boards are down')`);
  expect(await counted('scrape_job')).toEqual([after]);
  await engine.sql.query('select millrace.add_pulses()');
  await engine.sql.query('delete from public.linkedin_links');
  expect(await counted('scrape_job')).toEqual([after]);
  await engine.expectSound();
});

test('playbook B: what is stuck for too long goes back one word, and what is not stays', async ({ engine, links }) => {
  const stuck = await links.add('https://a.test/jobs/1');
  await links.classify('job');
  await (await links.worker('scrape_job')).takeOne();
  expect(await links.row(stuck)).toMatchObject({ status: 'scraping', status_since: await engine.now() });
  await engine.advance('31 minutes');
  const fresh = await links.add('https://b.test/jobs/2');
  await links.classify('job');
  await (await links.worker('scrape_job')).takeOne();
  await engine.sql.query(
    `update public.linkedin_links set status = 'queued', attempt_count = attempt_count + 1
     where status = 'scraping' and status_since < millrace.now() - interval '30 minutes'`,
  );
  expect(await links.row(stuck)).toMatchObject({
    status: 'queued',
    attempt_count: 1,
    status_since: await engine.now(),
    updated_at: await engine.now(),
  });
  expect(await links.row(fresh)).toMatchObject({ status: 'scraping' });
});

test('playbook B: the tries that people count are tries: after the fifth the link is dead', async ({
  engine,
  links,
}) => {
  const id = await links.add('https://a.test/jobs/1');
  await links.classify('job');
  const worker = await links.worker('scrape_job');
  const back = (to: string) =>
    engine.sql.query(
      `update public.linkedin_links set status = $1, attempt_count = attempt_count + 1 where status = 'scraping'`,
      [to],
    );
  for (const tries of [1, 2, 3, 4, 5]) {
    await worker.takeOne();
    await back('queued');
    expect(await links.row(id)).toMatchObject({ status: 'queued', attempt_count: tries });
    await engine.expectSound();
  }
  await worker.report(failed(await worker.takeOne()));
  expect(await links.row(id)).toMatchObject({ status: 'dead' });
  await engine.expectSound();
});

test('playbook B: a staged link goes back to be staged anew, and its try is counted', async ({ engine, links }) => {
  const id = await links.add('https://a.test/jobs/1');
  await links.classify('job');
  await links.scrape('scrape_job', 'one');
  await links.finish('stage_job', stagedJob());
  await engine.advance('31 minutes');
  await engine.sql.query(
    `update public.linkedin_links set status = 'scraped', attempt_count = attempt_count + 1
     where status = 'staged' and status_since < millrace.now() - interval '30 minutes'`,
  );
  expect(await links.row(id)).toMatchObject({ status: 'scraped', attempt_count: 1 });
  await links.finish('stage_job', stagedJob());
  expect(await links.row(id)).toMatchObject({ status: 'staged', attempt_count: 0 });
  await engine.expectSound();
});

test('a count that somebody writes is never more than the tries there were', async ({ engine, links }) => {
  const id = await links.add('https://a.test/jobs/1');
  await links.classify('job');
  await (await links.worker('scrape_job')).takeOne();
  await engine.sql.query(
    `update public.linkedin_links set status = 'queued', attempt_count = attempt_count + 7 where id = $1`,
    [id],
  );
  expect(await links.row(id)).toMatchObject({ status: 'queued', attempt_count: 1 });
  await engine.expectSound();
});

test.for(['new', 'classified', 'queued', 'scraping', 'scraped', 'staged', 'error'])(
  'playbook C: a link that is %s is given up by hand, with its cause',
  async (word, { engine, links }) => {
    const id = await links.add('https://a.test/jobs/1');
    if (word === 'classified') await engine.sql.query(`select millrace.pause('links', 'route_job')`);
    if (word !== 'new') await links.classify('job');
    if (word === 'scraped' || word === 'staged') await links.scrape('scrape_job', 'one');
    if (word === 'staged') await links.finish('stage_job', stagedJob());
    if (word === 'scraping' || word === 'error') {
      const worker = await links.worker('scrape_job');
      const item = await worker.takeOne();
      if (word === 'error') await worker.report(failed(item));
    }
    expect(await links.row(id)).toMatchObject({ status: word });
    await engine.sql.query(
      `update public.linkedin_links set status = 'dead', last_error = 'removed by the company' where id = $1`,
      [id],
    );
    expect(await links.row(id)).toMatchObject({ status: 'dead', last_error: 'removed by the company' });
    expect(
      await engine.rows('select error_code, error_message from millrace.dead_letters where entity_id = $1', [id]),
    ).toEqual([{ error_code: 'failed_by_hand', error_message: 'removed by the company' }]);
    await links.write(id, 'new');
    expect(await links.row(id)).toMatchObject({ status: 'new', last_error: null });
  },
);

test('a link that is done is not given up, and the refusal says what may be written', async ({ links }) => {
  const id = await links.add('https://a.test/jobs/1');
  await links.classify('job');
  await extract(links);
  await expect(links.write(id, 'dead')).rejects.toMatchObject({
    code: 'MR005',
    message: expect.stringContaining('cannot go from extracted to dead'),
  });
});

test.for([
  { word: 'scraping', until: async (links: Links) => void (await (await links.worker('scrape_job')).takeOne()) },
  { word: 'scraped', until: (links: Links) => links.scrape('scrape_job', 'one') },
  { word: 'extracted', until: (links: Links) => extract(links) },
])(
  'another address of a link that is $word begins anew, or is refused with what to write',
  async ({ word, until }, { engine, links }) => {
    const id = await links.add('https://a.test/jobs/1');
    await links.classify('job');
    await until(links);
    expect(await links.row(id)).toMatchObject({ status: word });
    const correct = (more: string) =>
      engine.sql.query(`update public.linkedin_links set raw_url = 'https://a.test/jobs/2'${more} where id = $1`, [id]);
    await expect(correct('')).rejects.toMatchObject({
      code: 'MR005',
      message: `raw_url of link ${id} cannot change while it is ${word}`,
      hint: `Begin anew with it: update linkedin_links set raw_url = …, status = 'new' where id = ${id}.`,
    });
    // Another spelling of the same address changes nothing.
    await engine.sql.query(`update public.linkedin_links set raw_url = 'http://www.a.test/jobs/1/' where id = $1`, [
      id,
    ]);
    await correct(`, status = 'new'`);
    await links.classify('job');
    expect(await links.row(id)).toMatchObject({ status: 'queued', canonical_url: 'https://a.test/jobs/2' });
    const item = await (await links.worker('scrape_job')).takeOne();
    expect(item.entity).toMatchObject({ raw_url: 'https://a.test/jobs/2' });
  },
);

test('another address waits while a link is being classified, and is free before', async ({ engine, links }) => {
  const id = await links.add('https://a.test/jobs/1');
  const correct = (url: string) =>
    engine.sql.query('update public.linkedin_links set raw_url = $2 where id = $1', [id, url]);
  await correct('https://a.test/jobs/2');
  await (await links.worker('classify')).takeOne();
  await expect(correct('https://a.test/jobs/3')).rejects.toMatchObject({
    code: 'MR005',
    message: `raw_url of link ${id} cannot change while it is being classified`,
  });
});
