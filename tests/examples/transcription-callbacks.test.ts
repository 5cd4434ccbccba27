// A transcription from its submission to its end, over the real engine: the runtime's drain, the local service, the function
// that callbacks go to, and the stage's own, which finishes the job.

import { Hono } from 'hono';
import { expect, onTestFinished } from 'vitest';
import { z } from 'zod';
import { listen } from '../../local/services/http/listen.ts';
import { startTranscriber } from '../../local/services/transcriber/server.ts';
import { databaseRpc } from '../../packages/test/database-rpc.ts';
import { definePipeline } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { answerCallback } from '../../supabase/functions/_millrace/jobs/answer-callback.ts';
import { defineStage, type Stage, waiting } from '../../supabase/functions/_millrace/stage/stage.ts';
import { projectClient, projectError, storageStatus } from '../../supabase/functions/_services/project-client.ts';
import {
  submitTranscription,
  transcription,
  transcriptOfJob,
} from '../../supabase/functions/_services/transcription.ts';
import { definitionOf } from '../support/definitions.ts';
import { type Engine, test } from '../support/engine.ts';
import { wavOf } from '../support/examples/recordings.ts';
import { serveFunctions } from '../support/runtime/functions-server.ts';
import { type Interruption, invoke } from '../support/runtime/real-drain.ts';
import { until } from '../support/until.ts';

const talks = definePipeline({
  name: 'talks',
  entity: { table: 'public.talks', key: 'id', projection: 'none' },
  stages: {
    hear: {
      kind: 'external',
      function: 'talks-hear',
      batchSize: 10,
      maxWorkers: 2,
      leaseSeconds: 60,
      timeoutSeconds: 10,
      retry: { maxAttempts: 3, backoff: { kind: 'list', seconds: [0] } },
      completion: { callback: true, pollSeconds: null, deadlineSeconds: 600 },
    },
  },
});

interface Callback {
  url: string;
  body: string;
  status: number;
}

/** A talk that is to be heard, the service, and the function that is called back; `open` false turns callbacks away. */
async function startTalk(engine: Engine, open: boolean) {
  const received: Callback[] = [];
  const gate = { open };
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const settings: Record<string, string> = {
    WEBHOOK_SECRET: secret,
    DEEPGRAM_API_KEY: 'the-key',
    DEEPGRAM_PRICE_MINUTE: '0.6',
  };
  const rpc = databaseRpc(await engine.database.connect('service_role'));
  const { env, served } = await serveFunctions({ stages: [], rpc, env: settings });
  const jobComplete = answerCallback(env, () => rpc);
  const app = new Hono();
  app.get('/talk.wav', (c) => c.body(new Uint8Array(wavOf(2, 'The ferry leaves at seven.'))));
  app.post('/job-complete', async (c) => {
    const body = await c.req.text();
    const answer = gate.open
      ? await jobComplete(new Request(c.req.url, { method: 'POST', body }))
      : new Response(null, { status: 503 });
    received.push({ url: c.req.url, body, status: answer.status });
    return answer;
  });
  const host = await listen(app.fetch);
  const transcriber = await startTranscriber({
    env: { ...settings, DEEPGRAM_ALLOW_HOSTS: new URL(host.url).host },
    callbackDelaysMs: [],
  });
  env.DEEPGRAM_URL = transcriber.url;
  onTestFinished(async () => {
    await Promise.all([transcriber.stop(), host.stop()]);
  });

  const stage = defineStage({
    pipeline: talks,
    stage: 'hear',
    input: z.object({}),
    output: z.object({ entity: z.string(), text: z.string() }),
    handler: async (_, context) => {
      const audioUrl = `${host.url}/talk.wav?token=t`;
      const asked = { ...context, env, callbackUrl: `${host.url}/job-complete` };
      return waiting(transcription, await submitTranscription(audioUrl, asked));
    },
    services: [transcription],
    finish: async (job, context) => ({ entity: context.entityId, text: transcriptOfJob(job, context).text }),
  });
  served.stages = [stage];
  await engine.sql.query('create table public.talks (id bigint primary key)');
  await engine.define(definitionOf(talks));
  const run = await engine.value<string>(`
    with talk as (insert into public.talks values (41) returning id) select millrace.start('talks', id::text) from talk`);

  /** Sends the first callback again, as the service would. */
  const deliver = async (changes: Partial<Callback> = {}) => {
    const { url, body } = { ...(received[0] as Callback), ...changes };
    gate.open = true;
    const answer = await fetch(url, { method: 'POST', body });
    // biome-ignore lint/suspicious/noExplicitAny: each test states what it expects of the answer.
    return { status: answer.status, answer: (await answer.json()) as any };
  };
  return { stage, served, run, received, deliver };
}

const attempts = (engine: Engine) =>
  engine.rows('select a.state::text, a.service, a.job_id, a.usage, a.output from millrace.attempts a order by a.id');
const heard = { entity: '41', text: 'The ferry leaves at seven.' };
const usage = expect.objectContaining({ model: 'embedded-transcript', audio_seconds: 2, cost_usd: 0.02 });

test('a transcription that is called back completes the attempt, with what it cost; a replay changes nothing', async ({
  engine,
}) => {
  const { stage, run, received, deliver } = await startTalk(engine, false);
  expect((await invoke(engine, stage)).end).toBe('empty');
  const [{ job_id: jobId } = {}] = await attempts(engine);
  expect(await attempts(engine)).toMatchObject([{ state: 'waiting', service: 'transcription' }]);
  await until(() => received.length > 0);

  expect(await deliver()).toEqual({ status: 200, answer: { verdict: 'accepted', reason: null } });
  const completed = [{ state: 'completed', service: 'transcription', job_id: jobId, usage, output: heard }];
  expect(await attempts(engine)).toEqual(completed);
  expect(await engine.value('select status::text from millrace.runs where id = $1', [run])).toBe('completed');
  expect(await deliver()).toEqual({ status: 200, answer: { verdict: 'duplicate', reason: null } });
  expect(await attempts(engine)).toEqual(completed);
});

test('a callback that overtakes the answer to its submission completes the attempt, and the worker accepts that', async ({
  engine,
}) => {
  const { stage, received } = await startTalk(engine, true);
  const untilCalledBack: Interruption = async (name, _, answer) => {
    if (name === 'millrace_complete' && answer === undefined) await until(() => received.length > 0);
  };
  const { end, calls } = await invoke(engine, stage, untilCalledBack);
  expect(end).toBe('empty');
  expect(calls.some(({ args }) => JSON.stringify(args.p_items)?.includes('"waiting"'))).toBe(true);
  expect(received.map(({ status }) => status)).toEqual([200]);
  expect(await attempts(engine)).toMatchObject([{ state: 'completed', output: heard, usage }]);
});

test('a callback after the run was cancelled changes nothing and learns why', async ({ engine }) => {
  const { stage, run, received, deliver } = await startTalk(engine, false);
  await invoke(engine, stage);
  await until(() => received.length > 0);
  await engine.value('select millrace.cancel($1)', [run]);
  const reason = 'the attempt was cancelled';
  expect(await deliver()).toEqual({ status: 200, answer: { verdict: 'stale', reason } });
  expect(await attempts(engine)).toMatchObject([{ state: 'cancelled', output: null }]);
});

test('a callback after the deadline completes the retry, whose own transcription is not needed any more', async ({
  engine,
}) => {
  const { stage, received, deliver } = await startTalk(engine, false);
  await invoke(engine, stage);
  await until(() => received.length > 0);
  await engine.advance('11 minutes');
  await engine.value('select millrace.sweep()');
  await invoke(engine, stage);
  await until(() => received.length > 1);
  expect(await deliver()).toMatchObject({ status: 200, answer: { verdict: 'accepted' } });
  expect(await attempts(engine)).toMatchObject([{ state: 'failed' }, { state: 'completed', output: heard }]);
  expect(await deliver(received[1])).toMatchObject({ status: 200, answer: { verdict: 'duplicate' } });
});

test('a transcription of another request does not complete an attempt that waits for its own', async ({ engine }) => {
  const { stage, received, deliver } = await startTalk(engine, false);
  await invoke(engine, stage);
  const { body } = await until(() => received[0]);
  const other = JSON.parse(body);
  other.metadata.request_id = 'another-request';
  expect(await deliver({ body: JSON.stringify(other) })).toMatchObject({ status: 200, answer: { verdict: 'stale' } });
  expect(await attempts(engine)).toMatchObject([{ state: 'waiting' }]);
});

test('a forged callback is refused, reads nothing and changes nothing', async ({ engine }) => {
  const { stage, received, deliver } = await startTalk(engine, false);
  await invoke(engine, stage);
  const { url } = await until(() => received[0]);
  expect(await deliver({ url: url.replace('entity_id=41', 'entity_id=42') })).toMatchObject({ status: 401 });
  expect(await deliver({ url: url.replace(/&signature=.*/, '') })).toMatchObject({ status: 401 });
  expect(await attempts(engine)).toMatchObject([{ state: 'waiting' }]);
});

test('a callback while Storage is out of reach, or too slow, is answered 503, and taken when it is sent again', async ({
  engine,
}) => {
  const { stage, served, received, deliver } = await startTalk(engine, false);
  await invoke(engine, stage);
  await until(() => received.length > 0);
  const outOfReach: Stage['finish'] = async (_, { env }) => {
    const { error } = await projectClient({ ...env, SUPABASE_URL: 'http://127.0.0.1:9' })
      .storage.from('texts')
      .upload('a.txt', 'text');
    if (error) throw projectError(storageStatus(error), error, 'Writing a.txt');
  };
  for (const finish of [outOfReach, () => new Promise(() => {})]) {
    served.stages = [{ ...stage, finish }];
    expect(await deliver()).toMatchObject({ status: 503 });
    expect(await attempts(engine)).toMatchObject([{ state: 'waiting' }]);
  }
  served.stages = [stage];
  expect(await deliver()).toMatchObject({ status: 200, answer: { verdict: 'accepted' } });
  expect(await attempts(engine)).toMatchObject([{ state: 'completed', output: heard }]);
});
