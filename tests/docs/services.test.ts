// The page's example against a service that was written from the page alone, over real HTTP and the real engine.
import { Hono } from 'hono';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished } from 'vitest';
import { listen } from '../../local/services/http/listen.ts';
import { databaseRpc } from '../../packages/test/database-rpc.ts';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { readPlatform } from '../../supabase/functions/_millrace/engine/platform.ts';
import { answerCallback } from '../../supabase/functions/_millrace/jobs/answer-callback.ts';
import { JobRecorder } from '../../supabase/functions/_millrace/jobs/job-recorder.ts';
import { pollJobs } from '../../supabase/functions/_millrace/jobs/poll-jobs.ts';
import type { Stage } from '../../supabase/functions/_millrace/stage/stage.ts';
import { type Engine, test } from '../support/engine.ts';
import { serveFunctions } from '../support/runtime/functions-server.ts';
import { keepLog } from '../support/runtime/make-drain.ts';
import { docsFolder, type OpenPage, testPage } from './page.ts';
import { errorOf, start, sweep, work } from './play.ts';

const open = testPage('services', docsFolder);
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

interface Mail {
  job_id: string;
  status: 'queued' | 'running' | 'completed' | 'failed';
  result?: unknown;
  request: { callback_url: string; metadata: object; to: string };
}

/** A mailer that knows of Millrace what the section "The protocol" says. `down` lets it answer 500. */
async function startMailer() {
  const mails = new Map<string, Mail>();
  const mailer = { down: false, mails: () => [...mails.values()] };
  const app = new Hono();
  app.use(async (c, next) => (mailer.down ? c.json({}, 500) : next()));
  app.post('/jobs', async (c) => {
    const key = c.req.header('idempotency-key') ?? '';
    const request = await c.req.json<Mail['request']>();
    const mail = mails.get(key) ?? { job_id: `mail-${mails.size + 1}`, status: 'queued' as const, request };
    if (mail.request.to !== request.to) return c.json({}, 409);
    mails.set(key, mail);
    return c.json({ job_id: mail.job_id }, 202);
  });
  app.get('/jobs/:id', (c) => {
    const mail = mailer.mails().find(({ job_id }) => job_id === c.req.param('id'));
    return mail ? c.json({ job_id: mail.job_id, status: mail.status, result: mail.result }) : c.json({}, 404);
  });
  const server = await listen(app.fetch);
  onTestFinished(() => server.stop());

  const send = (mail: Mail) => Object.assign(mail, { status: 'completed', result: { message_id: `<${mail.job_id}>` } });
  /** Calls back about a mail, with these changes to the metadata. */
  async function callBack(mail: Mail, changes: object = {}) {
    const { job_id, status, result, request } = mail;
    const data = { job_id, status, result, metadata: { ...request.metadata, ...changes } };
    const body = JSON.stringify({ type: 'job.completed', data });
    const now = new Date();
    const headers = {
      'webhook-id': job_id,
      'webhook-timestamp': `${Math.floor(now.getTime() / 1000)}`,
      'webhook-signature': new Webhook(secret).sign(job_id, now, body),
    };
    const answer = await fetch(request.callback_url, { method: 'POST', headers, body });
    return { status: answer.status, answer: (await answer.json()) as Record<string, unknown> };
  }
  return Object.assign(mailer, { url: server.url, send, callBack });
}

/** The page's pipeline with one notice under way, its function, the two that serve all, and the mailer. */
async function startNotice(engine: Engine, page: OpenPage, given: { MAILER_URL?: string } = {}) {
  const mailer = await startMailer();
  const stage = page.exported<Stage>('send');
  const client = await engine.database.connect('service_role');
  const rpc = databaseRpc(client);
  const settings = { MAILER_URL: mailer.url, WEBHOOK_SECRET: secret, ...given };
  const { env } = await serveFunctions({ stages: [stage], rpc, env: settings });
  const jobComplete = answerCallback(env, () => rpc);
  const host = await listen((request) => jobComplete(request));
  onTestFinished(() => host.stop());
  const id = await engine.value(
    `insert into public.notices (recipient, body) values ('office@nets.example', 'Open on Monday.') returning id`,
  );
  const run = await start(engine, page.exported<PipelineDefinition>('notices'), id);
  const submit = () => work(engine, stage, env, `${host.url}/job-complete`);
  const poll = () =>
    pollJobs({
      platform: readPlatform(env),
      recorder: new JobRecorder({ platform: readPlatform(env), rpc, log: keepLog() }, 0),
      budget: { fits: () => true },
      pollMs: undefined,
    });
  return { mailer, run, submit, poll };
}

const timeline = 'select number, state, service';

test('a mail is handed over, and its callback finishes the stage, once', async ({ engine }) => {
  const page = await open(engine);
  const { mailer, run, submit } = await startNotice(engine, page);
  await submit();
  expect(await page.run(engine, timeline, { 42: run })).toMatchObject([
    { number: 1, state: 'waiting', service: 'mailer', job_id: 'mail-1', error_code: null },
  ]);
  const [mail] = mailer.mails() as [Mail];
  expect(mail.request).toMatchObject({ to: 'office@nets.example', metadata: { service: 'mailer' } });
  mailer.send(mail);
  const lost = await mailer.callBack(mail, { service: 'printer' });
  expect(lost).toMatchObject({ status: 400, answer: { error: { code: 'unknown_service' } } });
  page.expectPromised((lost.answer.error as Error).message);
  expect(await mailer.callBack(mail)).toMatchObject({ status: 200, answer: { verdict: 'accepted' } });
  expect(await mailer.callBack(mail)).toMatchObject({ status: 200, answer: { verdict: 'duplicate' } });
  expect(await engine.value('select output from millrace.attempts')).toEqual({ message_id: '<mail-1>' });
});

test('a mail whose deadline has passed is not sent a second time by the retry', async ({ engine }) => {
  const page = await open(engine);
  const { mailer, run, submit, poll } = await startNotice(engine, page);
  await submit();
  const [mail] = mailer.mails() as [Mail];
  mail.status = 'running';
  await engine.advance('10 seconds');
  await poll();
  await engine.advance('11 minutes');
  await sweep(engine);
  await engine.advance('1 minute');
  await submit();
  expect(mailer.mails()).toHaveLength(1);
  mailer.send(mail);
  await engine.advance('10 seconds');
  await poll();
  expect(await page.run(engine, timeline, { 42: run })).toMatchObject([
    { number: 1, state: 'failed', job_id: 'mail-1', error_code: 'deadline' },
    { number: 2, state: 'completed', job_id: 'mail-1' },
  ]);
});

test('a fault of a service shows where an operator looks, and loses nothing', async ({ engine }) => {
  const page = await open(engine);
  const { mailer, run, submit, poll } = await startNotice(engine, page);
  mailer.down = true;
  await submit();
  page.expectPromised(await errorOf(engine, run));
  mailer.down = false;
  await engine.advance('1 minute');
  await submit();
  mailer.down = true;
  await engine.advance('10 seconds');
  await poll();
  const [verdict] = await page.run(engine, 'select ok, detail');
  expect(verdict).toMatchObject({ ok: false, detail: expect.stringContaining('The mailer answered 500') });
  page.expectPromised(verdict?.detail);
  expect(await page.run(engine, 'select at, message')).toHaveLength(1);
});

test('a setting that is missing is named', async ({ engine }) => {
  const page = await open(engine);
  const { run, submit } = await startNotice(engine, page, { MAILER_URL: '' });
  await submit();
  page.expectPromised(await errorOf(engine, run));
});
