import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import type { Rpc } from '../../supabase/functions/_millrace/engine/engine-client.ts';
import { answerCallback } from '../../supabase/functions/_millrace/jobs/answer-callback.ts';
import { signedCallbackUrl } from '../../supabase/functions/_millrace/jobs/callback-url.ts';
import type { Env } from '../../supabase/functions/_millrace/settings.ts';
import type { Stage } from '../../supabase/functions/_millrace/stage/stage.ts';
import { transcription } from '../../supabase/functions/_services/transcription.ts';
import { intel } from '../../supabase/functions/leads-intel/handler.ts';
import { scrape } from '../../supabase/functions/leads-scrape/handler.ts';
import { samples } from '../support/examples/leads-samples.ts';
import { transcriptionOf } from '../support/examples/transcription.ts';
import { startServer } from '../support/http-server.ts';
import { failedAnswer } from '../support/runtime/fake-engine.ts';
import { serveFunctions } from '../support/runtime/functions-server.ts';
import { jobEngine } from '../support/runtime/job-engine.ts';
import { modelResponse, startModelServer } from '../support/runtime/model-server.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const otherSecret = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;
const base: Env = { WEBHOOK_SECRET: secret };
const trace_id = '3f0c1c9e-5a6b-4c1d-9b0a-7d3f2e1a0b4c';
const completed = {
  type: 'job.completed',
  data: {
    job_id: 'job_1',
    status: 'completed',
    result: samples.scrape,
    metadata: { pipeline: 'leads', stage: 'scrape', submission: 5, trace_id, entity_id: '1' },
  },
};

const modelOwner = {
  function: 'leads-intel',
  service: 'llm',
  pipeline: 'leads',
  stage: 'intel',
  submission: 6,
  trace_id,
  entity_id: '1',
};

interface Sent {
  body?: string;
  key?: string;
  at?: Date;
  headers?: Record<string, string>;
}
function signed(payload: unknown, sent: Sent = {}): Request {
  const body = JSON.stringify(payload);
  const at = sent.at ?? new Date();
  return new Request('http://api.test/functions/v1/job-complete', {
    method: 'POST',
    headers: {
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(sent.key ?? secret).sign('msg_1', at, body),
      ...sent.headers,
    },
    body: sent.body ?? body,
  });
}

function send(payload: unknown, { rpc, env = base, sent }: { rpc: Rpc; env?: Env; sent?: Sent }) {
  return deliver(signed(payload, sent), rpc, env);
}

/** Lets job-complete answer, beside the stages' own functions; `settled` is when all these have done what they began. */
async function deliver(request: Request, rpc: Rpc, env: Env, stages: Stage[] = [scrape, intel]) {
  const functions = await serveFunctions({ stages, rpc, env });
  const answer = await answerCallback(functions.env, () => rpc)(request);
  return { status: answer.status, body: await answer.json(), settled: functions.settled };
}

test('the report of a child by its callback is collected in the background, before the function ends', async () => {
  const { rpc, collected } = jobEngine({ collect: [6] });
  const { settled } = await send(completed, { rpc });
  await settled();
  expect(collected).toEqual([[6]]);
});

describe('a callback is recorded', () => {
  test('with the job’s output as the stage stores it', async () => {
    const { rpc, resumed } = jobEngine();
    expect(await send(completed, { rpc })).toMatchObject({ status: 200, body: { verdict: 'accepted', reason: null } });
    expect(resumed).toEqual([
      [
        {
          ...completed.data.metadata,
          service: 'scraper',
          job_id: 'job_1',
          outcome: 'completed',
          result: samples.scrape,
        },
      ],
    ]);
  });

  test('with the job’s error', async () => {
    const { rpc, resumed } = jobEngine();
    const error = { code: 'not_found', message: 'answered 404', permanent: true };
    const { metadata } = completed.data;
    const payload = { type: 'job.failed', data: { job_id: 'job_1', status: 'failed', error, metadata } };
    expect((await send(payload, { rpc })).status).toBe(200);
    expect(resumed[0]?.[0]).toMatchObject({ submission: 5, outcome: 'failed', error });
  });

  test.each(['duplicate', 'stale'])(
    'and answered 200 when the engine says %s: nobody need send it again',
    async (v) => {
      const { rpc } = jobEngine({ verdicts: [v] });
      expect(await send(completed, { rpc })).toMatchObject({ status: 200, body: { verdict: v } });
    },
  );

  test('after a while when the row is locked', async () => {
    const { rpc, resumed } = jobEngine({ verdicts: ['busy', 'busy', 'accepted'] });
    expect(await send(completed, { rpc })).toMatchObject({ status: 200, body: { verdict: 'accepted' } });
    expect(resumed).toHaveLength(3);
  });

  test('signed with either secret while these are exchanged', async () => {
    const { rpc } = jobEngine();
    const env = { ...base, WEBHOOK_SECRET: `${otherSecret} ${secret}` };
    expect((await send(completed, { rpc, env })).status).toBe(200);
    expect((await send(completed, { rpc, env, sent: { key: otherSecret } })).status).toBe(200);
  });
});

describe('a callback that nobody vouches for is refused with 401 and changes nothing', () => {
  const minutes = (n: number) => new Date(Date.now() + n * 60_000);
  test.each<[string, Sent]>([
    ['forged', { key: otherSecret }],
    ['altered', { body: JSON.stringify({ ...completed, type: 'job.failed' }) }],
    ['older than 5 minutes', { at: minutes(-6) }],
    ['from the future', { at: minutes(6) }],
    ['with an old signature under a new time', { headers: { 'webhook-timestamp': '1700000000' } }],
    ['under another id', { headers: { 'webhook-id': 'msg_2' } }],
    ['with a signature that is none', { headers: { 'webhook-signature': 'v1' } }],
    ['unsigned', { headers: { 'webhook-signature': '' } }],
  ])('%s', async (_, sent) => {
    const { rpc } = jobEngine();
    const answer = await send(completed, { rpc, sent });
    expect(answer).toMatchObject({ status: 401, body: { error: { code: 'bad_signature' } } });
    expect(rpc).not.toHaveBeenCalled();
  });
});

describe('a body that cannot be used is answered 400 with the reason', () => {
  test.each([
    [{ type: 'job.done', data: { ...completed.data } }, /type/],
    [{ type: 'job.completed', data: { metadata: completed.data.metadata } }, /data\.job_id/],
    [{ type: 'job.completed', data: {} }, /data\.metadata/],
    [
      { ...completed, data: { ...completed.data, metadata: { ...completed.data.metadata, service: 'printer' } } },
      /waits for no service "printer".*: scraper/,
    ],
    [
      {
        type: 'job.completed',
        data: {
          job_id: 'j',
          metadata: { pipeline: 'leads', stage: 'scrape', submission: 'x', trace_id, entity_id: '1' },
        },
      },
      /data\.metadata\.submission/,
    ],
    [
      {
        type: 'job.completed',
        data: { job_id: 'j', metadata: { pipeline: 'leads', stage: 'zzz', submission: 1, trace_id, entity_id: '1' } },
      },
      /stage zzz of pipeline leads/,
    ],
    [
      { type: 'job.completed', data: { job_id: 'j', metadata: { pipeline: 'leads', stage: 'scrape', submission: 1 } } },
      /data\.metadata\.trace_id/,
    ],
    [
      {
        type: 'job.completed',
        data: { job_id: 'j', metadata: { pipeline: 'leads', stage: 'scrape', submission: 1, trace_id } },
      },
      /data\.metadata\.entity_id/,
    ],
    ['text', /body/i],
  ])('%j', async (payload, reason) => {
    const { rpc, resumed } = jobEngine();
    const answer = await send(payload, { rpc });
    expect(answer.status).toBe(400);
    expect(answer.body.error.message).toMatch(reason);
    expect(resumed).toEqual([]);
  });
});

describe('the sender is asked to try again', () => {
  test('with 503 while the row stays locked', async () => {
    const { rpc } = jobEngine({ verdicts: ['busy'] });
    expect(await send(completed, { rpc })).toMatchObject({ status: 503, body: { error: { code: 'busy' } } });
  });

  test('with 503 when the result could not be saved', async () => {
    expect((await send(completed, { rpc: async () => failedAnswer(503) })).status).toBe(503);
  });

  test('with 503 that names the setting when the model’s are missing, and the paid response is kept', async () => {
    const { rpc, resumed, faults } = jobEngine({ owners: { resp_1: modelOwner } });
    const server = await startModelServer(() => ({ json: modelResponse(samples.intel) }));
    const env = { ...base, ...server.env, LLM_MODEL: undefined };
    const answer = await send({ type: 'response.completed', data: { id: 'resp_1' } }, { rpc, env });
    expect(answer).toMatchObject({ status: 503, body: { error: { code: 'misconfigured' } } });
    expect(answer.body.error.message).toContain('LLM_MODEL is not set');
    expect(resumed).toEqual([]);
    const fault = { submission: 6, service: 'llm', job_id: 'resp_1', code: 'misconfigured' };
    expect(faults).toEqual([{ ...fault, message: expect.stringContaining('LLM_MODEL') }]);
  });

  test.each<[string, Partial<Stage>, RegExp]>([
    [
      'is not deployed',
      { definition: { ...scrape.definition, function: 'else' } as never },
      /leads-scrape answered 404/,
    ],
    ['serves another stage', { name: 'other' }, /leads-scrape answered 409.*correct the stage/],
  ])('with 503 while the stage’s function %s, and an operator is told', async (_, changes, expected) => {
    const { rpc, faults } = jobEngine();
    const stages = [{ ...scrape, ...changes }];
    const answer = await deliver(signed(completed), rpc, base, stages);
    expect(answer).toMatchObject({ status: 503, body: { error: { code: 'stage_unreachable' } } });
    expect(faults).toEqual([expect.objectContaining({ submission: 5, message: expect.stringMatching(expected) })]);
  });

  test('with 500 that names the setting when no secret is set', async () => {
    const { rpc } = jobEngine();
    const answer = await send(completed, { rpc, env: { ...base, WEBHOOK_SECRET: undefined } });
    expect(answer).toMatchObject({ status: 500, body: { error: { code: 'misconfigured' } } });
    expect(answer.body.error.message).toContain('WEBHOOK_SECRET is not set');
  });
});

describe('only the stage’s own function speaks of a callback', () => {
  test.each([
    [503, '{"code":"BOOT_ERROR","message":"Function failed to start"}'],
    [400, 'Bad Request'],
    [200, '<h1>hello</h1>'],
    // A function from before callbacks were handed over takes one for a wake-up.
    [202, '{"status":"draining"}'],
    [200, 'bad \u0000'],
  ])('whatever else answers %i %j is a fault, and the sender is to try again', async (status, text) => {
    const { rpc, faults } = jobEngine();
    const other = await startServer(() => ({ status, bytes: Buffer.from(text) }));
    const env = { ...base, SUPABASE_URL: other.url, SUPABASE_SERVICE_ROLE_KEY: 'k' };
    const answer = await answerCallback(env, () => rpc)(signed(completed));
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({ error: { code: 'stage_unreachable' } });
    expect(faults).toEqual([expect.objectContaining({ submission: 5, code: 'stage_unreachable' })]);
    expect(JSON.stringify(faults)).not.toContain('\\u0000');
  });

  test('and a redirect does not take the secret key to another server', async () => {
    const { rpc } = jobEngine();
    const stranger = await startServer(() => ({}));
    const other = await startServer(() => ({ status: 307, headers: { location: stranger.url } }));
    const env = { ...base, SUPABASE_URL: other.url, SUPABASE_SERVICE_ROLE_KEY: 'k' };
    expect((await answerCallback(env, () => rpc)(signed(completed))).status).toBe(503);
    expect(stranger.received).toEqual([]);
  });
});

test('a callback that the engine cannot read is not asked for again', async () => {
  const refused: Rpc = async () => failedAnswer(400);
  expect((await send(completed, { rpc: refused })).status).toBe(400);
});

test.each([true, ['1'], '0x1', 1.5, -1])('a submission is a number or digits, not %j', async (submission) => {
  const { rpc, resumed } = jobEngine();
  const metadata = { ...completed.data.metadata, submission };
  const answer = await send({ ...completed, data: { ...completed.data, metadata } }, { rpc });
  expect(answer).toMatchObject({ status: 400, body: { error: { message: expect.stringMatching(/submission/) } } });
  expect(resumed).toEqual([]);
});

describe('a callback that names its job alone, as a model’s does,', () => {
  const owners = { resp_1: modelOwner };
  const metadata = { prompt: 'intel-1@x' };
  const callback = { type: 'response.completed', data: { id: 'resp_1' } };

  test('is that of the attempt that waits for the job, which the stage fetches', async () => {
    const { rpc, resumed } = jobEngine({ owners });
    const server = await startModelServer(() => ({ json: modelResponse(samples.intel, { metadata }) }));
    expect((await send(callback, { rpc, env: { ...base, ...server.env } })).status).toBe(200);
    const { function: _, ...origin } = modelOwner;
    expect(resumed[0]?.[0]).toMatchObject({
      ...origin,
      job_id: 'resp_1',
      outcome: 'completed',
      result: samples.intel,
      usage: { prompt: 'intel-1@x', input_tokens: 1_000 },
    });
  });

  test('of a response that failed is recorded as a failure', async () => {
    const { rpc, resumed } = jobEngine({ owners });
    const failed = modelResponse('', { metadata, status: 'failed', error: { code: 'server_error', message: 'x' } });
    const server = await startModelServer(() => ({ json: failed }));
    const answer = await send({ ...callback, type: 'response.failed' }, { rpc, env: { ...base, ...server.env } });
    expect(answer.status).toBe(200);
    expect(resumed[0]?.[0]).toMatchObject({ outcome: 'failed', error: { code: 'server_error', permanent: false } });
  });

  test('is thanked for when the job is over, and asks nobody', async () => {
    const { rpc, resumed } = jobEngine({ owners: { resp_1: { ...modelOwner, ended: true } } });
    expect(await send(callback, { rpc })).toMatchObject({ status: 200, body: { verdict: 'stale' } });
    expect(resumed).toEqual([]);
  });

  test('is to be sent again while nobody waits for that job: the attempt may not have said so yet', async () => {
    const { rpc, resumed } = jobEngine();
    const answer = await send(callback, { rpc });
    expect(answer).toMatchObject({ status: 503, body: { error: { code: 'unknown_job' } } });
    expect(resumed).toEqual([]);
  });

  test.each([
    ['that the model does not know', { status: 404, json: { error: { message: 'none' } } }, 400],
    ['that is not finished', { json: modelResponse('', { metadata, status: 'in_progress' }) }, 503],
    ['while the model does not answer', { status: 500 }, 503],
  ])('about a response %s is answered %j', async (_, reply, status) => {
    const { rpc, resumed } = jobEngine({ owners });
    const server = await startModelServer(() => reply);
    expect((await send(callback, { rpc, env: { ...base, ...server.env } })).status).toBe(status);
    expect(resumed).toEqual([]);
  });
});

describe('a callback of a service that signs nothing', () => {
  const origin = {
    service: 'transcription',
    pipeline: 'leads',
    stage: 'scrape',
    submission: 5,
    trace_id,
    entity_id: '7',
  };
  const callbackUrl = (key = secret) => signedCallbackUrl('http://api.test/functions/v1/job-complete', origin, key);
  const post = (url: string, body: unknown, rpc: Rpc, env: Env = {}) => {
    const request = new Request(url, { method: 'POST', body: JSON.stringify(body) });
    return deliver(request, rpc, { ...base, DEEPGRAM_API_KEY: 'k', ...env }, [
      { ...scrape, services: [transcription] },
    ]);
  };

  test('is taken by the URL that it was given, and recorded for the request it names', async () => {
    const { rpc, resumed } = jobEngine();
    expect(await post(callbackUrl(), transcriptionOf(['Hello.']), rpc)).toMatchObject({ status: 200 });
    expect(resumed).toHaveLength(1);
    expect(resumed[0]?.[0]).toMatchObject({ ...origin, job_id: 'request-1' });
  });

  test('is taken while secrets are exchanged', async () => {
    const { rpc } = jobEngine();
    const env = { WEBHOOK_SECRET: `${otherSecret},${secret}` };
    expect((await post(callbackUrl(), transcriptionOf(['Hello.']), rpc, env)).status).toBe(200);
  });

  const changed = (change: (params: URLSearchParams) => void) => {
    const url = new URL(callbackUrl());
    change(url.searchParams);
    return url.href;
  };
  test.each([
    ['with another secret', () => callbackUrl(otherSecret)],
    ['without a signature', () => changed((params) => params.delete('signature'))],
    ['with an empty signature', () => changed((params) => params.set('signature', ''))],
    ['with a signature that is none', () => changed((params) => params.set('signature', 'AAAA'))],
    ['for another entity', () => changed((params) => params.set('entity_id', '8'))],
    ['for another submission', () => changed((params) => params.set('submission', '6'))],
    ['for another stage', () => changed((params) => params.set('stage', 'intel'))],
    ['for another service', () => changed((params) => params.set('service', 'ocr'))],
    ['for nobody', () => changed((params) => params.delete('entity_id'))],
    ['with nothing but a signature', () => 'http://api.test/functions/v1/job-complete?signature=AAAA'],
  ])('is refused with 401 and changes nothing: %s', async (_, url) => {
    const { rpc } = jobEngine();
    const answer = await post(url(), transcriptionOf(['Hello.']), rpc);
    expect(answer).toMatchObject({ status: 401, body: { error: { code: 'bad_signature' } } });
    expect(rpc).not.toHaveBeenCalled();
  });

  test('counts for what was signed, whatever is said beside it', async () => {
    const { rpc, resumed } = jobEngine();
    const url = changed((params) => params.append('entity_id', '8'));
    expect((await post(url, transcriptionOf(['Hello.']), rpc)).status).toBe(200);
    expect(resumed[0]?.[0]).toMatchObject({ entity_id: '7' });
  });

  test('is refused for a service that its stage does not name', async () => {
    const { rpc, resumed } = jobEngine();
    const url = signedCallbackUrl('http://api.test/', { ...origin, service: 'scraper' }, secret);
    expect(await post(url, completed, rpc)).toMatchObject({
      status: 400,
      body: { error: { code: 'unknown_service' } },
    });
    expect(resumed).toEqual([]);
  });

  test.each([null, '', 'text', {}, { metadata: {} }, { request_id: 'request-1' }])(
    'is answered 400 when it names no request: %j',
    async (body) => {
      const { rpc, resumed } = jobEngine();
      const answer = await post(callbackUrl(), body, rpc);
      expect(answer).toMatchObject({ status: 400, body: { error: { code: 'bad_callback' } } });
      expect(answer.body.error.message).toContain('metadata.request_id');
      expect(resumed).toEqual([]);
    },
  );

  test('may say that the request failed', async () => {
    const { rpc, resumed } = jobEngine();
    const body = { err_code: 'Bad Request', err_msg: 'failed to process audio', request_id: 'request-1' };
    expect((await post(callbackUrl(), body, rpc)).status).toBe(200);
    expect(resumed[0]?.[0]).toMatchObject({ job_id: 'request-1', outcome: 'failed' });
  });
});
