import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { type Context, Hono } from 'hono';
import { listen, type Service } from '../../../services/http/listen.ts';
import { readBlocks } from '../documents/read-blocks.ts';
import { buildSamplePdf } from '../documents/sample-pdf.ts';
import { brokenFeeds } from './broken-feeds.ts';
import { picture } from './pictures.ts';
import { type NewsArticle, readArticles } from './read-articles.ts';
import { articlePage, galleryPage, startPage } from './render-page.ts';
import { copied, printed, report, siteFeeds } from './site-feeds.ts';

/** An article whose page takes its time, in milliseconds. */
const slow = { slug: 'winter-salad-window', ms: 2_500 };

/**
 * Serves the sample news site on a free port of the loopback interface: feeds of all kinds, sitemaps, articles, pictures, and
 * what goes wrong on real sites.
 */
export async function startNews(): Promise<Service> {
  const articles = await readArticles();
  const app = new Hono();
  app.route('/', brokenFeeds());
  for (const [path, { type, write }] of Object.entries(siteFeeds(articles))) {
    app.get(path, (c) => unlessKnown(c, type, write(originOf(c))));
  }
  addPages(app, articles);
  app.get('/images/:name', (c) => {
    const found = picture(c.req.param('name'));
    return found ? c.body(found.bytes, 200, { 'content-type': found.type }) : c.notFound();
  });
  const pdf = new Uint8Array(await reportPdf());
  app.get(report.path, (c) => c.body(pdf, 200, { 'content-type': 'application/pdf' }));
  return listen(app.fetch);
}

function addPages(app: Hono, articles: NewsArticle[]): void {
  const bySlug = new Map(articles.map((article) => [article.slug, article]));
  const pageOf = (c: Context, slug: string, canonical?: string) => {
    const article = bySlug.get(slug);
    return article ? c.html(articlePage(article, originOf(c), canonical)) : c.notFound();
  };
  app.get('/', (c) => c.html(startPage(articles)));
  app.get('/2026/gallery', (c) => c.html(galleryPage()));
  app.get('/2026/withdrawn', (c) => c.text('This article was withdrawn.', 410));
  app.get('/2026/:slug', async (c) => {
    const slug = c.req.param('slug');
    if (slug === slow.slug) await delay(slow.ms);
    return pageOf(c, slug, `${originOf(c)}/2026/${slug}`);
  });
  app.get('/go/:slug', (c) => c.redirect(`/2026/${c.req.param('slug')}?utm_source=counter`, 301));
  app.get(printed.path, (c) => pageOf(c, printed.slug, `${originOf(c)}/2026/${printed.slug}`));
  app.get(copied.path, (c) => pageOf(c, copied.slug));
}

/** Returns the body, or 304 to whoever has it already. */
function unlessKnown(c: Context, type: string, body: string | Uint8Array<ArrayBuffer>): Response {
  const etag = `"${createHash('sha256').update(body).digest('hex').slice(0, 16)}"`;
  if (c.req.header('if-none-match') === etag) return c.body(null, 304, { etag });
  return c.body(body, 200, { 'content-type': type, etag });
}

async function reportPdf(): Promise<Uint8Array> {
  const text = await readFile(new URL('./reports/gardens-in-figures.md', import.meta.url), 'utf8');
  return buildSamplePdf('Gardens in figures', readBlocks(text));
}

function originOf(c: Context): string {
  return new URL(c.req.url).origin;
}
