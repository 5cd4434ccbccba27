// The pipeline sources on a stack: the real function, under the platform's limits of time, CPU and memory.
import { gzipSync } from 'fflate';
import { Hono } from 'hono';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { listen, type Service } from '../../local/services/http/listen.ts';
import { callHandler } from '../../packages/test/index.ts';
import type { Called } from '../../packages/test/test.d.ts';
import { poll } from '../../supabase/functions/sources-poll/handler.ts';
import type { Row } from '../support/engine.ts';
import { ProjectStack } from '../support/stack/project-stack.ts';

const patienceMs = 60_000;
const rss = (paths: string[]) =>
  `<rss><channel>${paths.map((path) => `<item><title>${path}</title><link>https://site.test/${path}</link></item>`).join('')}</channel></rss>`;

const feeds = { FEED_ALLOW_HOSTS: '127.0.0.1' };

class SourcesStack extends ProjectStack {
  static async start(): Promise<SourcesStack> {
    const env = { ...feeds, SOURCE_NEW_URLS: '1000' };
    return new SourcesStack(await ProjectStack.launch({ services: false, env }));
  }

  /** A source that the sweep does not poll meanwhile. */
  async add(address: string): Promise<string> {
    return this.value(
      `insert into public.source (address, next_poll_at) values ($1, now() + interval '1 day')
       on conflict (address) do update set last_error = null returning id`,
      [address],
    );
  }

  async source(id: string): Promise<Row> {
    return (await this.rows('select * from public.source where id = $1', [id]))[0] as Row;
  }

  /** Polls sources and waits until that is over; resolves to their rows. */
  async poll(...ids: string[]): Promise<Row[]> {
    for (const id of ids) await this.value(`select millrace.start('sources', $1)`, [id]);
    const running = `select not exists (
      select from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
      where p.name = 'sources' and r.status = 'running')`;
    await this.until(
      'the polls are over',
      () => this.value(running),
      patienceMs,
      async () => this.words(),
    );
    return Promise.all(ids.map((id) => this.source(id)));
  }

  words(): Row[] {
    return this.lastWords('sources-poll');
  }
}

let stack: SourcesStack;
let site: Service;
const asked: string[] = [];
const answers = new Map<string, (request: Request) => Response>();

beforeAll(async () => {
  const app = new Hono().all('*', (c) => {
    asked.push(c.req.path);
    return answers.get(c.req.path)?.(c.req.raw) ?? c.notFound();
  });
  site = await listen(app.fetch);
  stack = await SourcesStack.start();
  // The fate of the articles is not asked here.
  await stack.rows(`select millrace.pause('articles')`);
});
afterEach(() => stack.expectSound());
afterAll(async () => {
  await stack?.stop();
  await site?.stop();
});

test('a feed’s articles enter the queue; as long as it does not change, a poll is one request', async () => {
  answers.set('/feed.xml', (request) =>
    request.headers.get('if-none-match') === '"v1"'
      ? new Response(null, { status: 304 })
      : new Response(rss(['one', 'two?utm_source=feed']), { headers: { etag: '"v1"' } }),
  );
  const id = await stack.add(`${site.url}/feed.xml`);
  expect(await stack.poll(id)).toMatchObject([{ kind: 'rss', found: 2, etag: '"v1"', last_error: null }]);
  const queue = () =>
    stack.rows('select url, title, xmin::text from public.ingestion_queue where source_id = $1 order by url', [id]);
  const before = await queue();
  expect(before).toMatchObject([
    { url: 'https://site.test/one', title: 'one' },
    { url: 'https://site.test/two', title: 'two?utm_source=feed' },
  ]);
  asked.length = 0;
  expect(await stack.poll(id)).toMatchObject([{ found: 2, etag: '"v1"', last_error: null }]);
  expect(asked).toEqual(['/feed.xml']);
  expect(await queue()).toEqual(before);
});

test('a source that fails says why, and others go on', async () => {
  answers.set('/page', () => new Response('<!doctype html><html><head><title>Home</title></head></html>'));
  answers.set('/good.xml', () => new Response(rss(['three'])));
  const ids = [
    await stack.add(`${site.url}/page`),
    await stack.add(`${site.url}/gone.xml`),
    await stack.add('http://10.0.0.1/feed'),
    await stack.add('http://no-such-host.invalid/feed'),
    await stack.add(`${site.url}/good.xml`),
  ];
  const rows = await stack.poll(...ids);
  expect(rows.map(({ last_error }) => last_error)).toEqual([
    expect.stringMatching(/a web page, no feed .* enter the feed’s own address/),
    expect.stringMatching(/answered 404: correct the address/),
    expect.stringMatching(/10\.0\.0\.1 is not on the public internet: .* FEED_ALLOW_HOSTS/),
    expect.stringMatching(/no host no-such-host\.invalid/),
    null,
  ]);
  expect(rows.map(({ next_poll_at, last_polled_at }) => Number(next_poll_at) - Number(last_polled_at))).toEqual(
    ids.map(() => 3_600_000),
  );
  expect(rows[4]).toMatchObject({ found: 1 });
  expect(await stack.rows('select from millrace.dead_letters')).toEqual([]);
});

test('a sitemap of 50,000 addresses is read within one worker’s limits, over several polls', async () => {
  const address = (n: number) =>
    `https://site.test/archive/2026/03/a-title-of-usual-length-as-sites-have-them-${n}.html`;
  const urls = Array.from(
    { length: 50_000 },
    (_, n) => `<url><loc>${address(n)}</loc><lastmod>2026-03-03</lastmod></url>`,
  );
  const packed = gzipSync(new TextEncoder().encode(`<urlset>\n${urls.join('\n')}\n</urlset>`));
  answers.set(
    '/sitemap.xml.gz',
    () => new Response(packed, { headers: { etag: '"all"', 'content-type': 'application/gzip' } }),
  );
  // All but the last of each fifty are known.
  await stack.rows(
    `with known as (
       insert into public.ingestion_queue (url, entry_type) values ('https://site.test/archive', 'manual') returning id
     )
     insert into public.article_fingerprint (fingerprint, queue_id)
     select public.url_fingerprint(format($1, n)), k.id from known k, generate_series(0, 49999) n where n % 50 <> 49`,
    ['https://site.test/archive/2026/03/a-title-of-usual-length-as-sites-have-them-%s.html'],
  );
  const id = await stack.add(`${site.url}/sitemap.xml.gz`);
  // Each poll is started below, and none by the sweep.
  await stack.rows('update public.source set enabled = false where id = $1', [id]);
  const found: unknown[] = [];
  for (let more = true; more; ) {
    const [row] = await stack.poll(id);
    expect(row).toMatchObject({ last_error: null, kind: 'sitemap' });
    found.push(row?.found);
    more = (row as Row & { cursor: Row }).cursor.pass !== null;
  }
  expect(found).toEqual([200, 400, 600, 800, 1000]);
  expect(await stack.source(id)).toMatchObject({ etag: '"all"' });
  // A worker that the platform kills would have lost its lease.
  expect(await stack.rows(`select error from millrace.attempts where state = 'failed'`)).toEqual([]);
});

describe('what may pass by itself', () => {
  const run = async (path: string, retryCount: number): Promise<[Called, Row]> => {
    const address = `${site.url}${path}`;
    const id = await stack.add(address);
    const { apiUrl, secretKey } = stack.stack;
    const called = await callHandler(poll, {
      row: { id, address, etag: null, last_modified: null, cursor: null },
      env: { SUPABASE_URL: apiUrl, SUPABASE_SECRET_KEYS: JSON.stringify({ default: secretKey }), ...feeds },
      retryCount,
    });
    return [called, await stack.source(id)];
  };

  test('is tried again at once, and then is the source’s error', async () => {
    answers.set('/busy', () => new Response('', { status: 503 }));
    expect((await run('/busy', 0))[0]).toMatchObject({
      outcome: 'failed',
      error: { code: 'server_error', permanent: false },
    });
    const [outcome, row] = await run('/busy', 2);
    expect(outcome).toMatchObject({
      outcome: 'completed',
      result: { error: { code: 'server_error' }, state: null, more: false },
    });
    // Should the attempt have ended the worker, the source would say so, and be due by its interval.
    expect(row).toMatchObject({ last_error: expect.stringContaining('cut off 2 times') });
    expect(Number(row.next_poll_at)).toBeGreaterThan(Date.now() + 3_000_000);
  });

  test('is not tried before the site wants it', async () => {
    answers.set('/soon', () => new Response('', { status: 429, headers: { 'retry-after': '30' } }));
    expect((await run('/soon', 0))[0]).toMatchObject({
      outcome: 'failed',
      error: { code: 'rate_limited', retry_after_ms: 30_000 },
    });
    answers.set('/late', () => new Response('', { status: 429, headers: { 'retry-after': '7200' } }));
    expect((await run('/late', 0))[0]).toMatchObject({
      outcome: 'completed',
      result: { error: { code: 'rate_limited' }, wait_seconds: 7200 },
    });
  });
});
