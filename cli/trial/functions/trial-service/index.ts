// The services of a trial's stages, so that it needs no paid ones: a page, jobs that call back, a model. The function
// keeps no state, since each isolate has a memory of its own: a job's id holds the time when it ends.
import '../_trial/count-calls.ts';
import { Webhook } from 'standardwebhooks';
import { serve, waitUntil } from '../../../../supabase/functions/_millrace/edge-runtime.ts';

const { TRIAL_SERVICE_AUTH_TOKEN: token, WEBHOOK_SECRET: secret = '' } = process.env;
/** How long a job takes. The model takes half of it. */
const jobMs = Number(process.env.TRIAL_SERVICE_MS);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const refuse = (status: number, message: string) => Response.json({ error: { code: 'refused', message } }, { status });

serve(async (request) => {
  const path = new URL(request.url).pathname.replace(/^.*trial-service/, '');
  if (path === '/page') return new Response('A page of the trial.');
  if (!token || request.headers.get('authorization') !== `Bearer ${token}`) {
    return refuse(401, 'authorization is not the token of this trial.');
  }
  if (path === '/jobs') return takeJob(await request.json());
  if (path.startsWith('/jobs/')) return Response.json(jobOf(path.slice('/jobs/'.length)));
  if (path === '/v1/responses') return answerModel(await request.json());
  return refuse(404, `There is no ${path}.`);
});

interface Submitted {
  callback_url: string;
  metadata: unknown;
}

/** Takes a job, and calls back when it has ended. */
function takeJob({ callback_url, metadata }: Submitted): Response {
  const job_id = `${Date.now() + jobMs}-${crypto.randomUUID()}`;
  waitUntil(pause(jobMs).then(() => callBack(callback_url, { ...ended(job_id), metadata })));
  return Response.json({ job_id }, { status: 202 });
}

const ended = (job_id: string) => ({ job_id, status: 'completed', result: { rendered: 'A text.' } });

function jobOf(job_id: string) {
  return Date.now() < Number(job_id.split('-')[0]) ? { job_id, status: 'running' } : ended(job_id);
}

/** Signs as Standard Webhooks says, and tries again while it is told to. */
async function callBack(url: string, data: { job_id: string; metadata: unknown }): Promise<void> {
  const body = JSON.stringify({ type: 'job.completed', data });
  for (let tries = 0; tries < 5; tries += 1) {
    const at = new Date();
    const headers = {
      'content-type': 'application/json',
      'webhook-id': data.job_id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(secret).sign(data.job_id, at, body),
    };
    const { status } = await fetch(url, { method: 'POST', headers, body });
    if (status !== 503 && status !== 429) return;
    await pause(500);
  }
}

/** The same answer of the Responses API to every request. */
async function answerModel({ model, metadata }: { model: string; metadata: unknown }): Promise<Response> {
  await pause(jobMs / 2);
  const content = [{ type: 'output_text', text: '{"verdict":"fine"}', annotations: [] }];
  return Response.json({
    id: `resp_${crypto.randomUUID()}`,
    object: 'response',
    created_at: Math.floor(Date.now() / 1000),
    status: 'completed',
    background: false,
    error: null,
    incomplete_details: null,
    model,
    metadata,
    output: [{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }],
    output_text: '',
    usage: {
      input_tokens: 20,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 25,
    },
  });
}
