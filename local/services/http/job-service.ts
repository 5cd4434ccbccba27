import { setMaxListeners } from 'node:events';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { z } from 'zod';
import { tokenMatches } from './auth-token.ts';
import { readJobRequest } from './job-request.ts';
import { type CommonRequest, Jobs } from './jobs.ts';
import { listen, type Service } from './listen.ts';
import { readWebhookSecrets } from './signed-callback.ts';

export interface JobServiceOptions<Schema extends z.ZodType<CommonRequest>, Result> {
  /** The name of the service in its messages. */
  name: string;
  /** The schema of the body of `POST /jobs`. */
  request: Schema;
  /** Does the work of a job, until `stop` aborts. Rejects with a JobError. */
  run: (request: z.output<Schema>, stop: AbortSignal) => Promise<Result>;
  /** The part of a request that must be the same under the same idempotency key (default: all of it). */
  identity?: (request: z.output<Schema>) => unknown;
  /** How many jobs run at a time. */
  concurrency: number;
  env: Record<string, string | undefined>;
  /** The name of the setting that holds the bearer token. */
  tokenSetting: string;
  port?: number | undefined;
  /** Pauses between the tries of a callback. */
  callbackDelaysMs?: number[] | undefined;
}

const bodyBytes = 256 * 1024;
const retryAfterSeconds = 30;

/**
 * Starts a service of jobs on the loopback interface: POST /jobs, GET /jobs/:id and a signed callback at the end.
 * Resolves to its base URL and the way to stop it; rejects when a setting cannot be used or the port is taken.
 */
export async function startJobService<Schema extends z.ZodType<CommonRequest>, Result>(
  options: JobServiceOptions<Schema, Result>,
): Promise<Service> {
  const { run, concurrency, env } = options;
  const ending = new AbortController();
  // Every job and callback under way listens for the end.
  setMaxListeners(0, ending.signal);
  const secrets = readWebhookSecrets(env.WEBHOOK_SECRET);
  const jobs = new Jobs<z.output<Schema>, Result>({
    run: (request) => run(request, ending.signal),
    identity: options.identity ?? ((request) => request),
    concurrency,
    secrets,
    callbackDelaysMs: options.callbackDelaysMs ?? [500, 1000, 2000, 4000],
    stop: ending.signal,
  });
  const service = await listen(jobApp(jobs, options, secrets.length > 0).fetch, options.port);
  return {
    url: service.url,
    stop: () => {
      ending.abort();
      return service.stop();
    },
  };
}

function jobApp<Schema extends z.ZodType<CommonRequest>, Result>(
  jobs: Jobs<z.output<Schema>, Result>,
  { name, request: schema, env, tokenSetting }: JobServiceOptions<Schema, Result>,
  canSign: boolean,
): Hono {
  const app = new Hono();
  app.use('/jobs/*', async (c, next) => {
    if (tokenMatches(c.req.header('authorization'), env[tokenSetting])) return next();
    const message = `the Authorization header does not carry ${tokenSetting}; send "Bearer <token>"`;
    return c.json({ error: { code: 'unauthorized', message } }, 401);
  });
  app.post('/jobs', bodyLimit({ maxSize: bodyBytes, onError: (c) => c.json({ error: tooLong }, 413) }), async (c) => {
    const body = await c.req.json().catch(() => undefined);
    const read = readJobRequest(schema, body);
    if ('bad' in read) return c.json({ error: read.bad }, 400);
    if (read.request.callback_url !== undefined && !canSign) {
      const message = `callback_url is set, but the ${name} has no WEBHOOK_SECRET to sign with; set one or leave it out`;
      return c.json({ error: { code: 'invalid_request', message, field: 'callback_url' } }, 400);
    }
    const submitted = jobs.submit(read.request, c.req.header('idempotency-key'));
    if (submitted === 'key_reused') return c.json({ error: keyReused }, 409);
    if (submitted === 'full') return c.json({ error: full }, 429, { 'retry-after': String(retryAfterSeconds) });
    const { view, created } = submitted;
    return c.json({ job_id: view.job_id, status: view.status }, created ? 202 : 200);
  });
  app.get('/jobs/:id', (c) => {
    const view = jobs.find(c.req.param('id'));
    if (view) return c.json(view as object);
    const message = `no job has this id; jobs are forgotten an hour after their end and when the ${name} stops`;
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
const full = { code: 'rate_limited', message: 'too many jobs are waiting; submit this one again later' };
const tooLong = {
  code: 'invalid_request',
  message: `the body is longer than ${bodyBytes} bytes; send less metadata`,
  field: 'body',
};
