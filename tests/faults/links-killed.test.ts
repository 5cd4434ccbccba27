// The scraper is ended as a crash ends it, in the midst of a page: the function that hands pages over, and the service itself.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Row } from '../support/engine.ts';
import { recordWords } from '../support/examples/links.ts';
import { startTestSite, type TestSite } from '../support/examples/test-site.ts';
import { type FaultProxy, startFaultProxy } from '../support/faults/fault-proxy.ts';
import { ScraperProcess } from '../support/faults/scraper-process.ts';
import { type FunctionsFolder, functionsFolder } from '../support/stack/functions-folder.ts';
import { ProjectStack } from '../support/stack/project-stack.ts';

const patienceMs = 90_000;

class LinksStack extends ProjectStack {
  static async start(env: Record<string, string>, functionsDir: string, proxy: FaultProxy): Promise<LinksStack> {
    const started = new LinksStack(await ProjectStack.launch({ env, functionsDir }));
    proxy.target = started.stack.apiUrl;
    await started.takeClock();
    await recordWords((statement) => started.rows(statement));
    return started;
  }

  add(url: string): Promise<string> {
    return this.value('insert into public.linkedin_links (raw_url) values ($1) returning id', [url]);
  }

  word(id: string): Promise<string> {
    return this.value('select status from public.linkedin_links where id = $1', [id]);
  }

  /** Lets time pass until a link is extracted: leases end, jobs are asked after, and what waits for another try has its turn. */
  async finish(id: string): Promise<void> {
    const told = async () => [
      ...(await this.rows('select * from public.linkedin_links')),
      ...(await this.rows('select * from millrace.attempts order by id desc limit 4')),
      ...this.lastWords('links-scrape-job', 'millrace'),
    ];
    const isExtracted = async () => {
      await this.advance('20 seconds');
      await this.sweep();
      await this.rows(
        `update public.linkedin_links set next_attempt_at = millrace.now() where status = 'error' and id = $1`,
        [id],
      );
      return (await this.word(id)) === 'extracted';
    };
    await this.until(`link ${id} is extracted`, isExtracted, patienceMs, told);
  }

  /** The rows of a link that may exist once at most. */
  async kept(id: string): Promise<Row | undefined> {
    const [row] = await this.rows(
      `select (select count(*)::int from public.linkedin_jobs_raw where link_id = $1) as raw,
         (select count(*)::int from public.link_page_drafts where link_id = $1) as drafts,
         (select count(*)::int from public.linkedin_jobs_stage where link_id = $1) as staged,
         (select count(*)::int from public.jobs where link_id = $1) as jobs,
         (select count(*)::int from public.words where link_id = $1 and word = 'scraped') as scraped,
         (select count(*)::int from millrace.attempts a join millrace.stages s on s.id = a.stage_id
            join millrace.runs r on r.id = a.run_id
            where s.name = 'scrape_job' and a.state = 'completed' and r.entity_id = $1::text) as completed`,
      [id],
    );
    return row;
  }
}

const once = { raw: 1, drafts: 0, staged: 1, jobs: 1, scraped: 1, completed: 1 };
const posting = {
  '@context': 'https://schema.org',
  '@type': 'JobPosting',
  title: 'Weaver',
  hiringOrganization: { '@type': 'Organization', name: 'Acme Looms' },
  jobLocation: { '@type': 'Place', address: { addressLocality: 'Ulm' } },
  description: 'Weave cloth.',
};
const page = `<html><head><script type="application/ld+json">${JSON.stringify(posting)}</script></head><body>Weaver</body></html>`;

let site: TestSite;
let proxy: FaultProxy;
let folder: FunctionsFolder;
let scraper: ScraperProcess;
let stack: LinksStack;
beforeAll(async () => {
  folder = functionsFolder({ projectUrlFrom: 'PROJECT_PROXY_URL' });
  [site, proxy] = await Promise.all([startTestSite(), startFaultProxy()]);
  const shared = { WEBHOOK_SECRET: `whsec_${randomBytes(24).toString('base64')}` };
  scraper = await ScraperProcess.start({ ...shared, SCRAPER_ALLOW_HOSTS: new URL(site.url).host });
  const env = { ...shared, SCRAPER_URL: scraper.url, PROJECT_PROXY_URL: proxy.url };
  stack = await LinksStack.start(env, folder.path, proxy);
});
afterAll(async () => {
  await Promise.all([stack?.stop(), proxy?.stop(), site?.stop(), scraper?.kill()]);
  folder.remove();
});

/** Serves the job's page; the first request for it may hang. */
function serve(path: string, { hangs = false } = {}) {
  let asked = 0;
  const url = site.add((_, response) => {
    asked++;
    if (hangs && asked === 1) return;
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page);
  }, path);
  return { url, asked: () => asked };
}

/** Kills the function that scrapes jobs when it makes its first call to a function of the database. */
function killAt(rpc: string): { killed: () => boolean } {
  let killed = false;
  proxy.decide = async ({ path, body }) => {
    const isWord = path.endsWith(`/rpc/${rpc}`) && (rpc !== 'millrace_complete' || body.includes('"job_id"'));
    if (killed || !isWord) return 'pass';
    killed = true;
    await stack.stack.functions.kill('links-scrape-job');
    return { status: 503, json: {} };
  };
  return { killed: () => killed };
}

test('Crash the scraper mid-run → on restart, item resumes without duplicate raw rows.', async () => {
  const { url, asked } = serve('/jobs/hangs', { hangs: true });
  const id = await stack.add(url);
  await stack.until('the page is being fetched', async () => asked() === 1, patienceMs);
  await stack.until('its word is scraping', async () => (await stack.word(id)) === 'scraping', patienceMs);
  await scraper.kill();
  // Nobody answers while it is gone.
  await stack.advance('20 seconds');
  await stack.sweep();
  await scraper.restart();
  await stack.finish(id);
  expect(await stack.kept(id)).toEqual(once);
  expect(asked()).toBe(2);
  await stack.expectSound();
});

test.each([
  ['tells that it waits for the page', 'millrace_complete'],
  ['drafts the page', 'draft_link_page'],
  ['tells that the page is here', 'millrace_resume'],
])('the function is killed as it %s: the item resumes without duplicate raw rows', async (_, rpc) => {
  const { killed } = killAt(rpc);
  const { url } = serve(`/jobs/${rpc}`);
  const id = await stack.add(url);
  await stack.until(`the function was killed at ${rpc}`, async () => killed(), patienceMs);
  await stack.finish(id);
  expect(await stack.kept(id)).toEqual(once);
  await stack.expectSound();
});
