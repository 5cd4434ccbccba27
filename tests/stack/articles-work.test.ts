// The stages of articles on the whole stack: real functions, the local scraper and model, Storage, and a site whose pages the
// test writes.
import type http from 'node:http';
import { createCanvas } from '@napi-rs/canvas';
import { imageSize } from 'image-size';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Row } from '../support/engine.ts';
import { textPdf } from '../support/examples/documents.ts';
import { startTestSite, type TestSite } from '../support/examples/test-site.ts';
import { ProjectStack } from '../support/stack/project-stack.ts';

const patienceMs = 60_000;
const secret = `whsec_${Buffer.from('a secret of twenty-four b').toString('base64')}`;

class ArticlesStack extends ProjectStack {
  static async start(site: TestSite, hookUrl: string): Promise<ArticlesStack> {
    const env = { SCRAPER_ALLOW_HOSTS: new URL(site.url).host, SITE_HOOK_URL: hookUrl, SITE_HOOK_SECRET: secret };
    const started = new ArticlesStack(await ProjectStack.launch({ env }));
    await started.rows(
      `insert into public.topic (name, description) values ('Canals', 'Canals, locks, lock gates, boats and water')`,
    );
    await started.rows(
      `insert into public.tag (name, description) values ('locks', 'Locks and their gates'), ('bread', null)`,
    );
    return started;
  }

  /** Adds an article and waits until it is where `holds` says. */
  async work(values: Row, holds: (row: Row) => boolean): Promise<Row> {
    const places = Object.keys(values).map((_, index) => `$${index + 1}`);
    const insert = `insert into public.ingestion_queue (${Object.keys(values)}) values (${places}) returning id`;
    const id = await this.value<string>(insert, Object.values(values));
    return this.reach(id, holds);
  }

  /** Waits until the article is where `holds` says. */
  async reach(id: string, holds: (row: Row) => boolean): Promise<Row> {
    let row: Row = {};
    const told = async () => [
      row,
      ...(await this.rows('select * from millrace.attempts order by id desc limit 5')),
      ...this.lastWords('articles-fetch', 'articles-score', 'articles-thumbnail'),
    ];
    const read = async () => {
      [row = {}] = await this.rows('select * from public.ingestion_queue where id = $1', [id]);
      return holds(row);
    };
    await this.until(`article ${id}`, read, patienceMs, told);
    return row;
  }
}

let site: TestSite;
let stack: ArticlesStack;
/** The messages that the site was told, as it came. */
const heard: { body: string; headers: http.IncomingHttpHeaders }[] = [];

beforeAll(async () => {
  site = await startTestSite();
  const hook = site.add((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      heard.push({ body, headers: request.headers });
      response.writeHead(204).end();
    });
  });
  stack = await ArticlesStack.start(site, hook);
});
afterAll(async () => {
  await Promise.all([stack?.stop(), site?.stop()]);
});

const send = (type: string, body: Buffer | string) => (_: unknown, response: http.ServerResponse) =>
  response.writeHead(200, { 'content-type': type }).end(body);

test('a page becomes an article with everything that a review needs', async () => {
  const image = site.add(send('image/jpeg', createCanvas(1600, 900).toBuffer('image/jpeg')));
  const page = site.add(
    send(
      'text/html',
      `<html lang="en"><head><title>Lock gates</title><meta name="author" content="Ines Holm"><meta property="og:image" content="${image}">
       </head><body><article><h1>Lock gates</h1>${'<p>The lock gates of the canal were replaced; boats pass the locks.</p>'.repeat(4)}</article></body></html>`,
    ),
  );
  const row = await stack.work({ url: `${page}?utm_source=feed` }, ({ status_code: code }) => code === 300);
  expect(row).toMatchObject({
    title: 'Lock gates',
    author: 'Ines Holm',
    language: 'en',
    canonical_url: page,
    image_url: image,
  });
  expect(row.score).toBeGreaterThan(0.25);
  expect(row.summary).toContain('lock gates');
  expect(row.tags).toContain('locks');
  const thumbnail = await fetch(row.thumbnail_url as string);
  expect(thumbnail.headers.get('content-type')).toBe('image/jpeg');
  expect(imageSize(Buffer.from(await thumbnail.arrayBuffer()))).toMatchObject({ width: 640, height: 360 });
  for (const code of [310, 330]) {
    await stack.rows('update public.ingestion_queue set status_code = $2 where id = $1', [row.id, code]);
  }
  await stack.reach(row.id as string, ({ status_code: code }) => code === 400);
  const notices = () => stack.rows('select * from public.site_notice');
  await stack.until('the site hears of it', async () => heard.length > 0, patienceMs, notices);
  const [{ body, headers } = { body: '', headers: {} }] = heard;
  const message = new Webhook(secret).verify(body, headers as Record<string, string>);
  expect(message).toMatchObject({ type: 'publication.published', data: { title: 'Lock gates', url: page } });
  await stack.expectSound();
});

test('a PDF behind an address that does not show it becomes one too, with a card', async () => {
  const line = { text: 'A survey of the lock gates and the canal.', x: 60, y: 60, size: 11 };
  const paper = site.add(send('application/pdf', Buffer.from(await textPdf([line]))));
  const row = await stack.work({ url: paper }, ({ status_code: code }) => code === 300);
  expect(row).toMatchObject({ title: line.text, content: line.text, image_url: null });
  const thumbnail = await fetch(row.thumbnail_url as string);
  expect(imageSize(Buffer.from(await thumbnail.arrayBuffer()))).toMatchObject({ width: 640, height: 360 });
});
