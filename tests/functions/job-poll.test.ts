import { describe, expect, test } from 'vitest';
import { createEngine, type Rpc } from '../../supabase/functions/_shared/engine-client.ts';
import type { WaitingJob } from '../../supabase/functions/_shared/engine-contract.ts';
import type { Env } from '../../supabase/functions/_shared/settings.ts';
import { answerPollDoorbell, pollJobs } from '../../supabase/functions/job-poll/handler.ts';
import { failedAnswer } from './support/fake-engine.ts';
import { type Reply, startServer } from './support/http-server.ts';
import { jobEngine } from './support/job-engine.ts';
import { samples } from './support/leads-samples.ts';
import { keepLog } from './support/make-drain.ts';

const due = (submission: number, changes: Partial<WaitingJob> = {}): WaitingJob => ({
  attempt: submission,
  submission,
  trace_id: `trace-${submission}`,
  pipeline: 'leads',
  stage: 'scrape',
  function: 'leads-scrape',
  service: 'scraper',
  job_id: `job_${submission}`,
  entity_id: '1',
  deadline_at: null,
  awaits_start: true,
  ...changes,
});
const origin = (submission: number) => ({
  pipeline: 'leads',
  stage: 'scrape',
  submission,
  trace_id: `trace-${submission}`,
  entity_id: '1',
});
const job = (status: string, more: object = {}): Reply => ({ json: { job_id: 'j', status, ...more } });

async function poll(rpc: Rpc, reply: (path: string) => Reply | null, env: Env = {}) {
  const server = await startServer((request) => reply(request.path));
  await pollJobs({
    env: { SCRAPER_URL: server.url, ...env },
    engine: createEngine({ rpc, retryUntil: () => Date.now() + 1_000, log: keepLog() }),
    ringer: { ring: () => {}, settled: async () => {} },
    folder: { fold: () => {}, settled: async () => {} },
    budget: { fits: () => true },
  });
  return server;
}

describe('the poller', () => {
  test('records what has ended and leaves alone what has not', async () => {
    const { rpc, resumed } = jobEngine({ due: [due(1), due(2), due(3)] });
    const error = { code: 'timeout', message: 'slow', permanent: false };
    const server = await poll(rpc, (path) => {
      if (path === '/jobs/job_1') return job('running');
      return path === '/jobs/job_2' ? job('completed', { result: samples.scrape }) : job('failed', { error });
    });
    expect(server.received).toHaveLength(3);
    expect(resumed).toEqual([
      [
        { ...origin(2), service: 'scraper', job_id: 'job_2', outcome: 'completed', result: samples.scrape },
        { ...origin(3), service: 'scraper', job_id: 'job_3', outcome: 'failed', error },
      ],
    ]);
  });

  test('takes a job the service does not know for lost, to be submitted again', async () => {
    const { rpc, resumed } = jobEngine({ due: [due(1)] });
    await poll(rpc, () => ({ status: 404 }));
    expect(resumed[0]?.[0]).toMatchObject({ outcome: 'failed', error: { code: 'job_lost', permanent: false } });
  });

  test.each([500, 401, 429])('draws no conclusion from a service that answers %i', async (status) => {
    const { rpc, resumed } = jobEngine({ due: [due(1), due(2)] });
    await poll(rpc, (path) => (path.endsWith('1') ? { status } : job('completed', { result: samples.scrape })));
    expect(resumed.flat().map((item) => item.submission)).toEqual([2]);
  });

  test('goes on until no poll is due', async () => {
    const { rpc, polled } = jobEngine({ due: Array.from({ length: 45 }, (_, i) => due(i + 1)) });
    const server = await poll(rpc, () => job('queued'));
    expect(polled).toHaveLength(3);
    expect(server.received).toHaveLength(45);
  });

  test('sends a job whose row is locked again', async () => {
    const { rpc, resumed } = jobEngine({ due: [due(1)], verdicts: ['busy', 'accepted'] });
    await poll(rpc, () => job('completed', { result: samples.scrape }));
    expect(resumed).toHaveLength(2);
  });

  test('records the others when the engine refuses the batch for one of them', async () => {
    const { rpc, resumed } = jobEngine({ due: [due(1), due(2), due(3)] });
    const picky: Rpc = (name, args) => {
      const items = (args.p_items ?? []) as { submission: number }[];
      return items.some((item) => item.submission === 2) ? Promise.resolve(failedAnswer(400)) : rpc(name, args);
    };
    await poll(picky, () => job('completed', { result: samples.scrape }));
    expect(resumed.flat().map((item) => item.submission)).toEqual([1, 3]);
  });

  test('passes COMPLETION_POLL_INTERVAL on to the engine', async () => {
    const { rpc, polled } = jobEngine();
    await poll(rpc, () => null, { COMPLETION_POLL_INTERVAL: '1500' });
    expect(polled).toEqual([{ p_limit: 20, p_poll_ms: 1_500 }]);
  });
});

test('what children reported by their jobs is folded before the poller ends', async () => {
  const { rpc, folded } = jobEngine({ due: [due(1)], fold: [6] });
  const server = await startServer(() => job('completed', { result: samples.scrape }));
  const env = { SUPABASE_URL: server.url, SUPABASE_SECRET_KEYS: '{"default":"k"}', SCRAPER_URL: server.url };
  const started: Promise<void>[] = [];
  const answer = answerPollDoorbell(
    env,
    (work) => started.push(work),
    () => rpc,
  );
  await answer(new Request('http://f', { method: 'POST', headers: { apikey: 'k' } }));
  await Promise.all(started);
  expect(folded).toEqual([[6]]);
});

test('its doorbell is answered at once, to callers with the secret key only', async () => {
  const { rpc } = jobEngine();
  const started: Promise<void>[] = [];
  const env = { SUPABASE_URL: 'http://127.0.0.1:9', SUPABASE_SECRET_KEYS: '{"default":"sb_secret_a"}' };
  const answer = answerPollDoorbell(
    env,
    (work) => started.push(work),
    () => rpc,
  );
  const ring = (apikey: string) => answer(new Request('http://f', { method: 'POST', headers: { apikey } }));
  expect((await ring('sb_secret_b')).status).toBe(401);
  expect(started).toHaveLength(0);
  expect((await ring('sb_secret_a')).status).toBe(202);
  expect(started).toHaveLength(1);
  await Promise.all(started);
});
