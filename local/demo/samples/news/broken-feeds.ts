import { Hono } from 'hono';
import { rssFeed } from './feeds.ts';
import { startPage } from './render-page.ts';

const hugeBytes = 20 * 1024 * 1024;
const item = { path: '/2026/balcony-beans', title: 'A balcony of runner beans', date: '2026-08-03' };

/** Addresses under /broken/ at which something stands in a feed's place, each wrong in one way. */
export function brokenFeeds(): Hono {
  const app = new Hono();
  const xml = { 'content-type': 'application/rss+xml' };
  app.get('/broken/page', (c) => c.html(startPage([])));
  app.get('/broken/cut.xml', (c) => c.body(rssFeed([item, item], originOf(c.req.url)).slice(0, -120), 200, xml));
  app.get('/broken/unlinked.xml', (c) => {
    const feed = rssFeed([item, item], originOf(c.req.url));
    return c.body(feed.replace(/<link>.*<\/link>/g, ''), 200, xml);
  });
  app.get('/broken/huge.xml', (c) => {
    const piece = new TextEncoder().encode('<!-- nothing -->'.repeat(4096));
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      start: (pieces) => pieces.enqueue(new TextEncoder().encode('<rss><channel>')),
      pull(pieces) {
        pieces.enqueue(piece);
        sent += piece.length;
        if (sent > hugeBytes) pieces.close();
      },
    });
    return c.body(body, 200, xml);
  });
  app.get('/broken/busy.xml', (c) => c.body('Later, please.', 429, { 'retry-after': '7200' }));
  return app;
}

function originOf(url: string): string {
  return new URL(url).origin;
}
