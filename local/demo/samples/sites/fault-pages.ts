import type { HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';

const hugeBytes = 10 * 1024 * 1024;
const slowMs = 60_000;
const paragraph = '<p>The workshop is open from Monday to Friday, and visitors are welcome at the counter.</p>';

/** Pages that go wrong in one way each, under /faults/. */
export function faultPages(): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  for (const status of [401, 403, 404, 410, 418, 500, 503] as const) {
    app.get(`/faults/${status}`, (c) => c.html(paragraph, status));
  }
  app.get('/faults/429', (c) => c.html(paragraph, 429, { 'retry-after': '7' }));
  app.get('/faults/slow', async (c) => {
    await gone(c.req.raw.signal, slowMs);
    return c.html(paragraph);
  });
  app.get('/faults/huge', (c) => c.html(paragraph.repeat(Math.ceil(hugeBytes / paragraph.length))));
  app.get('/faults/empty', (c) => c.html('<html><body><script>start()</script><img src="logo.png"></body></html>'));
  app.get('/faults/image', (c) => c.body(new Uint8Array([137, 80, 78, 71]), 200, { 'content-type': 'image/png' }));
  app.get('/faults/redirect-private', (c) => c.redirect('http://169.254.169.254/latest/meta-data/'));
  app.get('/faults/redirect-loop', (c) => c.redirect('/faults/redirect-loop'));
  app.get('/faults/redirect-file', (c) => c.redirect('file:///etc/hosts'));
  app.get('/faults/broken', (c) => {
    const cut = new ReadableStream<Uint8Array>({
      start: (body) => body.enqueue(new TextEncoder().encode(paragraph)),
      // The first chunk is on its way by the time the second is asked for.
      pull: () => new Promise(() => c.env.outgoing.write('', () => c.env.outgoing.destroy())),
    });
    return c.body(cut, 200, { 'content-type': 'text/html', 'content-length': '1000' });
  });
  app.get('/faults/charset', (c) =>
    c.body(
      new Uint8Array(
        Buffer.from('<html><head><title>Prix</title></head><body><p>Le café coûte 3 £ à Mölln.</p>', 'latin1'),
      ),
      200,
      {
        'content-type': 'text/html; charset=iso-8859-1',
      },
    ),
  );
  return app;
}

function gone(signal: AbortSignal, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms).unref();
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
