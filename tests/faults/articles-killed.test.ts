// Each function of articles and sources is killed in the midst of its work: when it has done all of it, and is about to say so.
import type http from 'node:http';
import { createCanvas } from '@napi-rs/canvas';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestSite, type TestSite } from '../support/examples/test-site.ts';
import { type Call, type FaultProxy, startFaultProxy } from '../support/faults/fault-proxy.ts';
import { type FunctionsFolder, functionsFolder } from '../support/stack/functions-folder.ts';
import { ProjectStack } from '../support/stack/project-stack.ts';

const patienceMs = 60_000;

class ArticlesStack extends ProjectStack {
  /** The stages whose functions have been killed. */
  readonly killed: string[] = [];
  #mourned = 0;

  static async start(site: TestSite, proxy: FaultProxy, functionsDir: string): Promise<ArticlesStack> {
    const { host } = new URL(site.url);
    const env = { SCRAPER_ALLOW_HOSTS: host, FEED_ALLOW_HOSTS: host, PROJECT_PROXY_URL: proxy.url };
    const started = new ArticlesStack(await ProjectStack.launch({ env, functionsDir }));
    proxy.target = started.stack.apiUrl;
    await started.takeClock();
    await started.rows(`insert into public.topic (name, description) values ('Canals', 'Canals, locks, gates, boats')`);
    await started.rows(`insert into public.tag (name) values ('locks')`);
    return started;
  }

  /**
   * Waits until the only article shows a code, and with `over` until nothing is under way; whenever a function has been killed,
   * time passes until nobody counts on it.
   */
  async reach(code: number, over = true): Promise<void> {
    const reached = `select status_code = $1 and (not $2 or not exists (select from millrace.runs where status = 'running'))
      from public.ingestion_queue`;
    const told = async () => [
      { killed: this.killed },
      ...(await this.rows('select id, status_code, title from public.ingestion_queue')),
      ...(await this.rows('select * from millrace.attempts order by id desc limit 4')),
    ];
    const holds = async () => {
      for (; this.#mourned < this.killed.length; this.#mourned++) {
        // The lease first, then the pause before the retry.
        for (const time of ['2 minutes', '10 seconds']) {
          await this.advance(time);
          await this.sweep();
        }
      }
      return this.value(reached, [code, over]);
    };
    await this.until(`the article shows ${code}`, holds, patienceMs, told);
  }

  async write(code: number, change = ''): Promise<void> {
    await this.rows(`update public.ingestion_queue set status_code = $1${change}`, [code]);
  }

  /** The attempts at a stage, as `state` or `state code`. */
  async attempts(stage: string): Promise<string[]> {
    const rows = await this.rows(
      `select concat_ws(' ', a.state, a.error ->> 'code') as line
       from millrace.attempts a join millrace.stages s on s.id = a.stage_id where s.name = $1 order by a.id`,
      [stage],
    );
    return rows.map(({ line }) => line as string);
  }
}

let site: TestSite;
let proxy: FaultProxy;
let folder: FunctionsFolder;
let stack: ArticlesStack;
beforeAll(async () => {
  folder = functionsFolder({ projectUrlFrom: 'PROJECT_PROXY_URL' });
  [site, proxy] = await Promise.all([startTestSite(), startFaultProxy()]);
  stack = await ArticlesStack.start(site, proxy, folder.path);
});
afterAll(async () => {
  await Promise.all([stack?.stop(), proxy?.stop(), site?.stop()]);
  folder.remove();
});

/** The stage that a call of a function says to be done with, if it does. */
async function reportedStage({ path, body }: Call): Promise<string | undefined> {
  if (!path.endsWith('/rpc/millrace_complete')) return undefined;
  const [item] = JSON.parse(body).p_items as { attempt: number }[];
  if (!item) return undefined;
  return stack.value<string>(
    'select s.name from millrace.attempts a join millrace.stages s on s.id = a.stage_id where a.id = $1',
    [item.attempt],
  );
}

const serve = (type: string, body: Buffer | string) => (_: unknown, response: http.ServerResponse) =>
  response.writeHead(200, { 'content-type': type }).end(body);

const stages = ['poll', 'fetch', 'score', 'summarize', 'tag', 'thumbnail', 'publish', 'republish'];

/** Kills the function of each stage when it says for the first time to be done. */
function killEachOnce(): void {
  const unharmed = new Set(stages);
  proxy.decide = async (call) => {
    const stage = await reportedStage(call);
    if (!stage || !unharmed.delete(stage)) return 'pass';
    await stack.stack.functions.kill(stage === 'poll' ? 'sources-poll' : `articles-${stage}`);
    stack.killed.push(stage);
    return { status: 503, json: {} };
  };
}

/** A feed with one article, which has an image; how often its page was read. */
function addFeed(): { feed: string; reads(): number } {
  let reads = 0;
  const image = site.add(serve('image/jpeg', createCanvas(320, 180).toBuffer('image/jpeg')));
  const text = '<p>The lock gates of the canal were replaced; boats pass the locks.</p>'.repeat(4);
  const head = `<head><title>Lock gates</title><meta property="og:image" content="${image}"></head>`;
  const page = site.add((request, response) => {
    reads += 1;
    serve('text/html', `<html lang="en">${head}<body><h1>Lock gates</h1>${text}</body></html>`)(request, response);
  });
  const items = `<item><link>${page}</link></item>`;
  const feed = serve('application/rss+xml', `<rss version="2.0"><channel><title>Canal</title>${items}</channel></rss>`);
  return { feed: site.add(feed), reads: () => reads };
}

test('an article whose every function is killed goes on to its end, and nothing of it is there twice', async () => {
  killEachOnce();
  const { feed, reads } = addFeed();
  await stack.rows(`insert into public.source (address, every) values ($1, '31 days')`, [feed]);
  await stack.sweep();
  await stack.reach(300, false);
  for (const code of [310, 330]) await stack.write(code);
  await stack.reach(400);
  await stack.write(320);
  await stack.write(410, `, title = 'Lock gates at last'`);
  await stack.reach(410);

  expect(stack.killed).toEqual(stages);
  for (const stage of stages) {
    const lines = (await stack.attempts(stage)).filter((line) => line !== 'skipped skipped');
    expect({ stage, lines: lines.slice(0, 2) }).toEqual({ stage, lines: ['failed lost_lease', 'completed'] });
  }
  const codes = await stack.rows<{ to_status: number }>('select to_status from public.status_history order by id');
  const twice = [110, 120, 210, 220, 230].map((ready) => [ready, ready + 1, ready, ready + 1, ready + 2]);
  const [fetched, scored, ...enriched] = twice.map((values) => values.join(' '));
  expect(codes.map(({ to_status: code }) => code).join(' ')).toBe(
    [100, fetched, scored, 200, ...enriched, 240, 300, 310, 330, 400, 320, 410].join(' '),
  );
  // The scraper was asked twice for one job.
  expect(reads()).toBe(1);
  expect(await stack.rows('select found, last_error from public.source')).toEqual([{ found: 1, last_error: null }]);
  expect(await stack.rows('select name from storage.objects')).toHaveLength(1);
  expect(await stack.rows('select title from public.publication')).toEqual([{ title: 'Lock gates at last' }]);
  expect(await stack.rows('select closed_why from public.millrace_decisions')).toEqual([
    { closed_why: 'decided' },
    { closed_why: 'decided' },
  ]);
  await stack.expectSound();
});
