// Links on the whole stack: the real functions, the local scraper and model, and a site whose pages the test writes.
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Row } from '../support/engine.ts';
import { recordWords } from '../support/links.ts';
import { ProjectStack } from '../support/project-stack.ts';
import { startTestSite, type TestSite } from '../support/test-site.ts';

const patienceMs = 90_000;

class LinksStack extends ProjectStack {
  static async start(siteUrl: string): Promise<LinksStack> {
    const started = new LinksStack(await ProjectStack.launch({ env: { SCRAPER_ALLOW_HOSTS: new URL(siteUrl).host } }));
    await started.takeClock();
    await recordWords((statement) => started.rows(statement));
    return started;
  }

  add(url: string): Promise<string> {
    return this.value('insert into public.linkedin_links (raw_url) values ($1) returning id', [url]);
  }

  /** Waits until a link shows a word; resolves to its row. */
  async reach(id: string, word: string): Promise<Row> {
    let row: Row = {};
    const told = async () => [
      row,
      ...(await this.rows('select * from millrace.attempts order by id desc limit 5')),
      ...this.lastWords('links-classify', 'links-scrape-job', 'links-stage-job', 'links-extract', 'job-complete'),
    ];
    const read = async () => {
      [row = {}] = await this.rows('select * from public.linkedin_links where id = $1', [id]);
      if (row.status === 'dead' && word !== 'dead') throw new Error(`link ${id} is dead: ${row.last_error}`);
      return row.status === word;
    };
    await this.until(`link ${id} is ${word}`, read, patienceMs, told);
    return row;
  }

  async words(id: string): Promise<unknown[]> {
    const rows = await this.rows('select word from public.words where link_id = $1 order by id', [id]);
    return rows.map(({ word }) => word);
  }
}

const posting = {
  '@context': 'https://schema.org',
  '@type': 'JobPosting',
  title: 'Weaver',
  hiringOrganization: { '@type': 'Organization', name: 'Acme Looms GmbH', sameAs: 'https://looms.test/' },
  jobLocation: { '@type': 'Place', address: { addressLocality: 'Ulm', addressCountry: 'DE' } },
  description: '<p>Weave <b>cloth</b>.</p>',
  datePosted: '2026-11-01',
};
const jobPage = `<html><head><title>Weaver</title>
  <script type="application/ld+json">${JSON.stringify(posting)}</script></head>
  <body><h1>Weaver</h1><p>Weave cloth.</p></body></html>`;
const postPage = `<html lang="en"><head><title>Bea on LinkedIn: we are hiring</title><meta property="og:title"
  content="Bea on LinkedIn: we are hiring"></head><body><main><p>We are hiring a dyer for the works in Ulm. Apply by mail
  to the company Dyers of Ulm, which is looking for a dyer with experience.</p></main></body></html>`;

let site: TestSite;
let stack: LinksStack;
let refusals = 0;

/** Serves a page at a path, once the site's refusals are used up; returns its URL. */
function serve(html: string, path: string): string {
  return site.add((_, response) => {
    const isRefused = refusals > 0;
    if (isRefused) refusals--;
    response.writeHead(isRefused ? 429 : 200, { 'content-type': 'text/html; charset=utf-8' });
    response.end(isRefused ? '' : html);
  }, path);
}

beforeAll(async () => {
  site = await startTestSite();
  stack = await LinksStack.start(site.url);
});
afterAll(async () => {
  await stack?.stop();
  await site?.stop();
});

test('End-to-end sample: new → extracted path exercised for both job and post.', async () => {
  const job = await stack.add(serve(jobPage, '/jobs/1?utm_source=mail'));
  const post = await stack.add(serve(postPage, '/posts/1'));
  expect(await stack.reach(job, 'extracted')).toMatchObject({
    classification: 'job',
    attempt_count: 0,
    last_error: null,
  });
  expect(await stack.reach(post, 'extracted')).toMatchObject({ classification: 'post' });
  const words = ['new', 'queued', 'scraping', 'scraped', 'staged', 'extracted'];
  expect(await stack.words(job)).toEqual(words);
  expect(await stack.words(post)).toEqual(words);
  const [row] = await stack.rows(
    `select j.title, j.location, j.jd, c.name, c.website from public.jobs j
     join public.companies c on c.id = j.company_id where j.link_id = $1`,
    [job],
  );
  expect(row).toEqual({
    title: 'Weaver',
    location: 'Ulm, DE',
    jd: 'Weave cloth.',
    name: 'Acme Looms GmbH',
    website: 'https://looms.test/',
  });
  const [raw] = await stack.rows(
    `select http_status, raw_json #>> '{json_ld,0,title}' as title, notes ->> 'final_url' as url
     from public.linkedin_jobs_raw where link_id = $1`,
    [job],
  );
  expect(raw).toEqual({ http_status: 200, title: 'Weaver', url: `${site.url}/jobs/1?utm_source=mail` });
  expect(
    await stack.rows('select author, language from public.linkedin_posts_stage where link_id = $1', [post]),
  ).toEqual([{ author: 'Bea', language: 'en' }]);
  await stack.expectSound();
});

test('Inject transient 429 → item moves to error, backs off, later succeeds.', async () => {
  refusals = 1;
  const id = await stack.add(serve(jobPage, '/jobs/busy'));
  const row = await stack.reach(id, 'error');
  expect(row).toMatchObject({ attempt_count: 1, last_error: expect.stringContaining('429') });
  expect(
    await stack.value(
      `select next_attempt_at between millrace.now() + interval '4 minutes'
    and millrace.now() + interval '6 minutes' from public.linkedin_links where id = $1`,
      [id],
    ),
  ).toBe(true);
  await stack.advance('6 minutes');
  await stack.sweep();
  expect(await stack.reach(id, 'extracted')).toMatchObject({
    attempt_count: 0,
    next_attempt_at: null,
    last_error: null,
  });
  const words = await stack.words(id);
  expect(words.slice(0, 4)).toEqual(['new', 'queued', 'scraping', 'error']);
  expect(words.at(-1)).toBe('extracted');
});

test('a link that is no URL and a private address end dead, and say why', async () => {
  const text = await stack.add('see below');
  const inside = await stack.add('http://10.0.0.7/jobs/1');
  expect((await stack.reach(text, 'dead')).last_error).toMatch(/no web address.*write status new/s);
  expect((await stack.reach(inside, 'dead')).last_error).toMatch(/10\.0\.0\.7/);
});
