import { setMaxListeners } from 'node:events';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { bearerMatches } from './bearer.ts';
import { crawlSite, type ScrapeLimits } from './crawl-site.ts';
import { type Resolve, readAllowedHosts, systemResolve } from './guarded-agent.ts';
import { readJobRequest } from './job-request.ts';
import { Jobs } from './jobs.ts';
import { listen, type Service } from './listen.ts';
import { PageReader } from './page-reader.ts';
import { readWebhookSecrets } from './signed-callback.ts';

export interface ScraperOptions {
  /** Reads SCRAPER_AUTH_TOKEN, WEBHOOK_SECRET and SCRAPER_ALLOW_HOSTS, once. */
  env: Record<string, string | undefined>;
  port?: number;
  /** How host names are resolved; the machine's own way unless a test gives another. */
  resolve?: Resolve;
  limits?: Partial<ScrapeLimits>;
  /** Pauses between the tries of a callback. */
  callbackDelaysMs?: number[];
}

const defaultLimits: ScrapeLimits = { pageBytes: 2 * 1024 * 1024, pageMs: 10_000, jobMs: 30_000, readMs: 5_000 };
const bodyBytes = 256 * 1024;

/**
 * Starts the scraper on the loopback interface. Resolves to its base URL and the way to stop it;
 * rejects when a setting cannot be used or the port is taken.
 */
export async function startScraper(options: ScraperOptions): Promise<Service> {
  const { env, resolve = systemResolve } = options;
  const ending = new AbortController();
  // Every job and callback under way listens for the end.
  setMaxListeners(0, ending.signal);
  const allowedHosts = readAllowedHosts(env.SCRAPER_ALLOW_HOSTS);
  const secrets = readWebhookSecrets(env.WEBHOOK_SECRET);
  const limits = { ...defaultLimits, ...options.limits };
  const reader = new PageReader(limits.readMs);
  const jobs = new Jobs({
    crawl: ({ url, max_pages: maxPages }) =>
      crawlSite(url, { maxPages, limits, allowedHosts, resolve, reader, stop: ending.signal }),
    secrets,
    callbackDelaysMs: options.callbackDelaysMs ?? [500, 1000, 2000, 4000],
    stop: ending.signal,
  });
  const service = await listen(scraperApp(jobs, env.SCRAPER_AUTH_TOKEN, secrets.length > 0).fetch, options.port);
  return {
    url: service.url,
    async stop() {
      ending.abort();
      await Promise.all([service.stop(), reader.stop()]);
    },
  };
}

function scraperApp(jobs: Jobs, token: string | undefined, canSign: boolean): Hono {
  const app = new Hono();
  app.use('/jobs/*', async (c, next) => {
    if (bearerMatches(c.req.header('authorization'), token)) return next();
    const message = 'the Authorization header does not carry SCRAPER_AUTH_TOKEN; send "Bearer <token>"';
    return c.json({ error: { code: 'unauthorized', message } }, 401);
  });
  app.post('/jobs', bodyLimit({ maxSize: bodyBytes, onError: (c) => c.json({ error: tooLong }, 413) }), async (c) => {
    const body = await c.req.json().catch(() => undefined);
    const read = readJobRequest(body);
    if ('bad' in read) return c.json({ error: read.bad }, 400);
    if (read.request.callback_url !== undefined && !canSign) {
      const message =
        'callback_url is set, but the scraper has no WEBHOOK_SECRET to sign with; set one or leave it out';
      return c.json({ error: { code: 'invalid_request', message, field: 'callback_url' } }, 400);
    }
    const submitted = jobs.submit(read.request, c.req.header('idempotency-key'));
    if (!submitted) return c.json({ error: keyReused }, 409);
    const { view, created } = submitted;
    return c.json({ job_id: view.job_id, status: view.status }, created ? 202 : 200);
  });
  app.get('/jobs/:id', (c) => {
    const view = jobs.find(c.req.param('id'));
    if (view) return c.json(view);
    const message = 'no job has this id; jobs are forgotten an hour after their end and when the scraper stops';
    return c.json({ error: { code: 'unknown_job', message } }, 404);
  });
  app.notFound((c) => {
    const message = 'nothing is served here; use POST /jobs and GET /jobs/:id';
    return c.json({ error: { code: 'unknown_path', message } }, 404);
  });
  return app;
}

const keyReused = {
  code: 'idempotency_key_reused',
  message: 'the Idempotency-Key came with another body before; send the same body, or another key for another job',
};
const tooLong = {
  code: 'invalid_request',
  message: `the body is longer than ${bodyBytes} bytes; send less metadata`,
  field: 'body',
};
