// The columns that the stages of links write, and what people may write, against the real database.
import { describe, expect, test as pipelineTest } from 'vitest';
import { openPipeline, startModel } from '../../packages/test/index.ts';
import type { StageWork } from '../../packages/test/test.d.ts';
import type { HandlerContext } from '../../supabase/functions/_millrace/mod.ts';
import { projectTest as base, type Engine, type Row } from '../support/engine.ts';
import { extractedJob, Links, pageOf, recordWords, scraped, stagedJob } from '../support/examples/links.ts';
import { openTransaction } from '../support/sessions.ts';
import { completed, failed, resume, waiting } from '../support/worker.ts';

const test = base.extend<{ links: Links }>({
  links: async ({ engine }, use) => use(new Links(engine)),
});

/** Opens the pipeline on links whose pages are drafted as by a scrape; of each page its stages find the same, unless told otherwise. */
async function openLinks(stages: Record<string, StageWork> = {}) {
  const fetchPage = async ({ entity: { id } }: { entity: Row }) => {
    await links.sql('select public.draft_link_page($1, $2, $3)', [id, 'one', pageOf()]);
    return scraped('one');
  };
  const links = await openPipeline('links', {
    services: [await startModel()],
    stages: {
      scrape_job: fetchPage,
      scrape_post: fetchPage,
      stage_job: stagedJob(),
      extract: extractedJob(),
      ...stages,
    },
  });
  return links;
}

pipelineTest('a job goes through every word to jobs and companies, and raises its events on the way', async () => {
  await using links = await openLinks();
  await recordWords((statement) => links.sql(statement));
  const id = await links.insert({ raw_url: 'https://www.linkedin.com/jobs/view/3912345678/?trk=x' });
  await links.expectRow(id).toComplete();
  expect(await links.sql('select * from public.linkedin_links')).toMatchObject([
    { status: 'extracted', attempt_count: 0, last_error: null, classification: 'job', classified_by: 'rule' },
  ]);
  const words = ['new', 'classified', 'queued', 'scraping', 'scraped', 'staged', 'extracted'];
  expect(await links.sql('select word from public.words order by id')).toEqual(words.map((word) => ({ word })));
  expect(await links.sql('select title, c.name from public.jobs join public.companies c on c.id = company_id')).toEqual(
    [{ title: 'Weaver', name: 'Acme GmbH' }],
  );
  expect(await links.sql('select event from public.link_events where link_id = $1 order by event', [id])).toEqual(
    ['link.classified', 'link.new', 'raw.persisted', 'staged.persisted'].map((event) => ({ event })),
  );
});

pipelineTest('a post that offers no job ends extracted without a row in jobs', async () => {
  const extras = { read_from: 'text', published_at: null };
  await using links = await openLinks({
    stage_post: { kind: 'post', author: 'B', text: 'Hello', language: 'en', extras },
    extract: { job: null, company: null, by: 'model' },
  });
  await links.expectRow(await links.insert({ raw_url: 'https://a.test/posts/1' })).toComplete();
  expect(await links.sql('select status from public.linkedin_links')).toEqual([{ status: 'extracted' }]);
  expect(await links.sql('select * from public.jobs')).toEqual([]);
  expect(await links.sql('select author, language from public.linkedin_posts_stage')).toEqual([
    { author: 'B', language: 'en' },
  ]);
});

pipelineTest('a company that is written in several ways is one, and keeps what is known of it', async () => {
  const found: Record<string, Row> = {
    'Acme GmbH': { website: 'https://acme.test/', sector: null },
    ACME: { website: null, sector: 'Cloth' },
    'Acme, Inc.': { website: null, sector: null },
  };
  const name = ({ entity }: { entity: Row }) => decodeURIComponent(String(entity.raw_url).split('/').at(-1) ?? '');
  await using links = await openLinks({
    stage_job: (input) => stagedJob({ company: name(input) }),
    extract: (input) => ({
      ...extractedJob(),
      company: { name: name(input), linkedin_url: null, size: null, ...found[name(input)] },
    }),
  });
  for (const company of Object.keys(found)) {
    const id = await links.insert({ raw_url: `https://a.test/jobs/${encodeURIComponent(company)}` });
    await links.expectRow(id).toComplete();
  }
  expect(await links.sql('select name, website, sector from public.companies')).toEqual([
    { name: 'Acme GmbH', website: 'https://acme.test/', sector: 'Cloth' },
  ]);
  expect(await links.sql('select distinct company_id from public.jobs')).toHaveLength(1);
});

test('a page becomes the raw row with its attempt alone, once, and leaves no draft behind', async ({
  engine,
  links,
}) => {
  const id = await links.add('https://a.test/jobs/1');
  await links.classify('job');
  const worker = await links.worker('scrape_job');
  const item = await worker.takeOne();
  await worker.report(waiting(item, 'one'));
  await links.draft(id, 'lost', '<p>of a job that was lost</p>');
  await links.draft(id, 'one');
  await links.draft(id, 'one');
  expect(await engine.rows('select * from public.linkedin_jobs_raw')).toEqual([]);
  const end = [
    { submission: item.submission, service: 'scraper', job_id: 'one', outcome: 'completed', result: scraped('one') },
  ];
  await resume(engine, end);
  await resume(engine, end);
  expect(await engine.rows('select link_id, http_status, fingerprint_hash from public.linkedin_jobs_raw')).toEqual([
    { link_id: id, http_status: 200, fingerprint_hash: 'f' },
  ]);
  expect(await engine.rows('select * from public.link_page_drafts')).toEqual([]);
});

test('a link that is deleted while it is scraped leaves nothing', async ({ engine, links }) => {
  const id = await links.add('https://a.test/jobs/1');
  await links.classify('job');
  const worker = await links.worker('scrape_job');
  await worker.report(waiting(await worker.takeOne(), 'one'));
  await engine.sql.query('delete from public.linkedin_links');
  await links.draft(id, 'one');
  expect(await engine.rows('select * from public.link_page_drafts')).toEqual([]);
});

test('a failure shows error with its wait and its cause, and five retries later the link is dead', async ({
  engine,
  links,
}) => {
  const id = await links.add('https://a.test/jobs/1');
  await links.classify('job');
  const worker = await links.worker('scrape_job');
  for (const [index, wait] of ['5m', '30m', '2h', '6h', '24h'].entries()) {
    await worker.report(failed(await worker.takeOne(), { code: 'rate_limited', message: 'asked for patience' }));
    const row = await links.row(id);
    expect(row).toMatchObject({ status: 'error', attempt_count: index + 1, last_error: 'asked for patience' });
    expect(
      await engine.value('select next_attempt_at - millrace.now() = $1::interval from public.linkedin_links', [wait]),
    ).toBe(true);
    await engine.advance(wait);
    await engine.value('select millrace.sweep()');
    expect((await links.row(id)).status).toBe('queued');
  }
  await worker.report(failed(await worker.takeOne(), { code: 'rate_limited', message: 'asked for patience' }));
  expect(await links.row(id)).toMatchObject({ status: 'dead', last_error: 'asked for patience' });
});

test('a dead link goes on where its word says, and not beyond the stage that failed', async ({ engine, links }) => {
  const id = await links.add('https://a.test/posts/1');
  await links.classify('post');
  const worker = await links.worker('scrape_post');
  await worker.report(failed(await worker.takeOne(), { code: 'not_found', message: 'gone', permanent: true }));
  expect((await links.row(id)).status).toBe('dead');
  await expect(links.write(id, 'staged')).rejects.toMatchObject({ code: 'MR005' });
  await expect(links.write(id, 'scrapped')).rejects.toMatchObject({
    code: 'MR005',
    message: `status of 1 row (${id}) was set to scrapped, which is no value of pipeline links`,
    hint: 'Known: new, error, classified, queued, scraping, scraped, staged, extracted, dead.',
  });
  await links.write(id, 'queued');
  await engine.value('select millrace.sweep()');
  await links.scrape('scrape_post', 'two');
  expect((await links.row(id)).status).toBe('scraped');
});

test('a page that comes once more when it is kept leaves no draft', async ({ engine, links }) => {
  const id = await links.add('https://a.test/jobs/1');
  await links.classify('job');
  await links.scrape('scrape_job', 'one');
  await links.draft(id, 'one');
  expect(await engine.rows('select * from public.link_page_drafts')).toEqual([]);
});

describe('a word goes on', () => {
  /** A link that is extracted. */
  async function extractedLink(links: Links): Promise<string> {
    const id = await links.add('https://a.test/jobs/1');
    await links.classify('job');
    await links.scrape('scrape_job', 'one');
    await links.finish('stage_job', stagedJob());
    await links.finish('extract', extractedJob());
    return id;
  }
  const live = (engine: Engine) =>
    engine.rows(
      `select s.name from millrace.attempts a join millrace.stages s on s.id = a.stage_id
       where a.state = 'queued' and s.name <> 'poll'`,
    );

  test('at its stage, as long as what the page says is kept', async ({ engine, links }) => {
    const id = await extractedLink(links);
    await links.write(id, 'staged');
    expect(await live(engine)).toEqual([{ name: 'extract' }]);
  });

  test('at the first stage whose rows were pruned', async ({ engine, links }) => {
    const id = await extractedLink(links);
    await engine.sql.query('delete from public.linkedin_jobs_stage');
    await links.write(id, 'staged');
    expect(await links.row(id)).toMatchObject({ status: 'scraped' });
    expect(await live(engine)).toEqual([{ name: 'stage_job' }]);
    await engine.sql.query('select millrace.cancel(id) from millrace.runs where status = $1', ['running']);
    await engine.sql.query('delete from public.linkedin_jobs_raw');
    await links.write(id, 'scraped');
    expect(await links.row(id)).toMatchObject({ status: 'queued' });
    expect(await live(engine)).toEqual([{ name: 'scrape_job' }]);
  });

  test('also when its runs were pruned with them, and jobs and companies stay', async ({ engine, links }) => {
    const id = await extractedLink(links);
    await engine.sql.query(
      `insert into public.link_page_drafts (link_id, job_id, http_status, raw_html, raw_json, fingerprint_hash)
       values ($1, 'stale', 200, '', '{}', 'f')`,
      [id],
    );
    await engine.advance('61 days');
    await engine.sql.query('select millrace.prune()');
    const [job] = await engine.rows(`select command from cron.job where jobname = 'links-delete-old-pages'`);
    await engine.sql.query(job?.command as string);
    for (const table of ['linkedin_jobs_raw', 'linkedin_jobs_stage', 'link_page_drafts']) {
      expect(await engine.rows(`select * from public.${table}`)).toEqual([]);
    }
    expect(await engine.value(`select count(*)::int from millrace.runs`)).toBe(0);
    await links.write(id, 'staged');
    expect(await links.row(id)).toMatchObject({ status: 'queued' });
    expect(await live(engine)).toEqual([{ name: 'scrape_job' }]);
    expect(await engine.value('select count(*)::int from public.jobs')).toBe(1);
  });

  test('whose pages are kept as many days as pg_cron says, but for what somebody holds', async ({ engine, links }) => {
    await extractedLink(links);
    const drop = (days: number) => engine.value<number>('select public.delete_old_link_pages($1)', [days]);
    await engine.advance('31 days');
    expect(await drop(60)).toBe(0);
    const user = await openTransaction(engine);
    await user.query('select from public.linkedin_jobs_raw for update');
    expect(await drop(30), 'the staged one').toBe(1);
    await user.query('rollback');
    expect(await drop(30)).toBe(1);
    expect(await engine.value('select count(*)::int from public.jobs')).toBe(1);
  });

  test('where the engine says, whatever was pruned meanwhile', async ({ engine, links }) => {
    const id = await extractedLink(links);
    await links.write(id, 'staged');
    const worker = await links.worker('extract');
    await worker.report(failed(await worker.takeOne(), { permanent: true }));
    await engine.sql.query('delete from public.linkedin_jobs_stage');
    await engine.sql.query(`select millrace.retry(millrace.run_of('links', $1))`, [id]);
    expect(await links.row(id)).toMatchObject({ status: 'staged' });
  });
});

test('a link has one trace id over all its runs', async ({ engine, links }) => {
  const id = await links.add('https://a.test/jobs/1');
  for (let run = 0; run < 2; run++) {
    await engine.sql.query('select millrace.cancel(id) from millrace.runs where status = $1', ['running']);
    await links.write(id, 'new');
  }
  const { trace_id } = await links.row(id);
  const runs = await engine.rows(
    'select count(*)::int as runs, count(distinct trace_id)::int, min(trace_id::text) from millrace.runs',
  );
  expect(runs).toEqual([{ runs: 3, count: 1, min: trace_id }]);
});

test('a person’s classification of a link stays, and the pipeline’s may change', async ({ engine, links }) => {
  const id = await links.add('https://a.test/x');
  const worker = await links.worker('classify');
  const item = await worker.takeOne();
  await engine.value('select public.note_unknown_link($1)', [id]);
  await worker.report(failed(item, { code: 'unknown_kind', message: 'unknown_kind', permanent: true }));
  expect(await links.row(id)).toMatchObject({ status: 'dead', classification: 'unknown', classified_by: 'model' });
  await engine.sql.query(`update public.linkedin_links set classification = 'post', status = 'new' where id = $1`, [
    id,
  ]);
  expect(await links.row(id)).toMatchObject({ status: 'new', classified_by: 'person' });
  await worker.report(completed(await worker.takeOne(), { classification: 'job', by: 'rule' }));
  expect(await links.row(id)).toMatchObject({ status: 'queued', classification: 'post', classified_by: 'person' });
});

pipelineTest('while the model’s budget is spent links stay staged, and one call takes them up', async () => {
  const extract = (_: object, { reportUsage }: Pick<HandlerContext, 'reportUsage'>) => {
    reportUsage({ model: 'm', cost_usd: 5, input_tokens: 1000, output_tokens: 100 });
    return extractedJob();
  };
  await using links = await openLinks({ extract });
  await links.expectRow(await links.insert({ raw_url: 'https://a.test/jobs/1' })).toComplete();
  const id = await links.insert({ raw_url: 'https://a.test/jobs/2' });
  await links.work();
  const row = 'select status, last_error from public.linkedin_links where id = $1';
  expect(await links.sql(row, [id])).toEqual([{ status: 'staged', last_error: null }]);
  expect(await links.sql('select reason from millrace.bypassed')).toEqual([{ reason: 'its budget is spent' }]);
  expect(await links.sql(`select from millrace.attempts where state = 'queued'`)).toEqual([]);
  await links.advance('1 day');
  expect(await links.sql(`select millrace.take_up('links', 'extract') as taken`)).toEqual([{ taken: 1 }]);
  await links.expectRow(id).toComplete();
});

test('the queues have the names that people know, with what waits in each', async ({ engine, links }) => {
  await links.add('https://a.test/jobs/1');
  await links.classify('job');
  await engine.sql.query(`select millrace.pause('links', 'route_post')`);
  await links.add('https://a.test/posts/1');
  await links.classify('post');
  await links.add('https://a.test/jobs/2');
  expect(await engine.rows('select queue, ready::int from public.link_queues')).toEqual([
    { queue: 'ingest', ready: 0 },
    { queue: 'classify', ready: 1 },
    { queue: 'route', ready: 1 },
    { queue: 'scrape.job', ready: 1 },
    { queue: 'scrape.post', ready: 0 },
    { queue: 'stage', ready: 0 },
    { queue: 'extract', ready: 0 },
  ]);
});
