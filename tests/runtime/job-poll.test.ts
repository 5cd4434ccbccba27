import { describe, expect, test } from 'vitest';
import type { Rpc } from '../../supabase/functions/_millrace/engine/engine-client.ts';
import type { WaitingJob } from '../../supabase/functions/_millrace/engine/engine-contract.ts';
import { readPlatform } from '../../supabase/functions/_millrace/engine/platform.ts';
import { JobRecorder } from '../../supabase/functions/_millrace/jobs/job-recorder.ts';
import { answerPollWakeUp, pollJobs } from '../../supabase/functions/_millrace/jobs/poll-jobs.ts';
import type { Stage } from '../../supabase/functions/_millrace/stage/stage.ts';
import { scrape } from '../../supabase/functions/leads-scrape/handler.ts';
import { samples } from '../support/examples/leads-samples.ts';
import { type Reply, startServer } from '../support/http-server.ts';
import { failedAnswer } from '../support/runtime/fake-engine.ts';
import { serveFunctions } from '../support/runtime/functions-server.ts';
import { jobEngine } from '../support/runtime/job-engine.ts';
import { keepLog } from '../support/runtime/make-drain.ts';

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
  awaits_start: false,
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

/** Polls once, with the scraper's own function beside; `reply` is what the scraper answers. */
async function poll(rpc: Rpc, reply: (path: string) => Reply | null, stages: Stage[] = [scrape]) {
  const server = await startServer((request) => reply(request.path));
  const { env, settled } = await serveFunctions({ stages, rpc, env: { SCRAPER_URL: server.url } });
  await pollJobs({
    platform: readPlatform(env),
    recorder: new JobRecorder({ platform: readPlatform(env), rpc, log: keepLog() }, Date.now() + 1_000),
    budget: { fits: () => true },
    pollMs: undefined,
  });
  await settled();
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

  test('tells the engine which jobs wait in the service’s queue, where it wants to hear', async () => {
    const { rpc, reports } = jobEngine({
      due: [due(1), due(2, { awaits_start: true }), due(3, { awaits_start: true })],
    });
    await poll(rpc, (path) => job(path === '/jobs/job_3' ? 'running' : 'queued'));
    expect(reports).toEqual([
      { attempt: 2, service: 'scraper', job_id: 'job_2', state: 'queued' },
      { attempt: 3, service: 'scraper', job_id: 'job_3', state: 'running' },
    ]);
  });

  test('takes a job the service does not know for lost, to be submitted again', async () => {
    const { rpc, resumed } = jobEngine({ due: [due(1)] });
    await poll(rpc, () => ({ status: 404 }));
    expect(resumed[0]?.[0]).toMatchObject({ outcome: 'failed', error: { code: 'job_lost', permanent: false } });
  });

  test.each([500, 401, 429])('draws no conclusion from a service that answers %i, and says so', async (status) => {
    const { rpc, resumed, faults } = jobEngine({ due: [due(1), due(2)] });
    await poll(rpc, (path) => (path.endsWith('1') ? { status } : job('completed', { result: samples.scrape })));
    expect(resumed.flat().map((item) => item.submission)).toEqual([2]);
    const message = expect.stringMatching(/scraper.*(answered|refused)/);
    expect(faults).toMatchObject([{ submission: 1, service: 'scraper', job_id: 'job_1', message }]);
  });

  test('leaves jobs of a service that cannot be asked to their callbacks', async () => {
    const { rpc, resumed, faults } = jobEngine({ due: [due(1)] });
    const [{ poll: _, ...mute }] = scrape.services as [(typeof scrape.services)[0]];
    const server = await poll(rpc, () => null, [{ ...scrape, services: [mute] }]);
    expect([server.received, resumed, faults]).toEqual([[], [], []]);
  });

  test.each<[string, Stage[], RegExp]>([
    ['is not deployed', [], /Function leads-scrape answered 404/],
    ['names no such service', [{ ...scrape, services: [] }], /waits for no service "scraper".*are: none/],
  ])('says for each job that its stage’s function %s', async (_, stages, expected) => {
    const { rpc, faults } = jobEngine({ due: [due(1), due(2)] });
    await poll(rpc, () => null, stages);
    expect(faults.map(({ submission }) => submission)).toEqual([1, 2]);
    expect(faults[1]?.message).toMatch(expected);
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
});

async function wake(rpc: Rpc, headers: Record<string, string>, more: Record<string, string> = {}) {
  const server = await startServer(() => job('completed', { result: samples.scrape }));
  const { env, settled } = await serveFunctions({ stages: [scrape], rpc, env: { SCRAPER_URL: server.url, ...more } });
  const started: Promise<void>[] = [];
  const answer = answerPollWakeUp(
    env,
    (work) => started.push(work),
    () => rpc,
  );
  const { status } = await answer(new Request('http://f', { method: 'POST', headers }));
  await Promise.all(started);
  await settled();
  return { status, started: started.length };
}

test('the reports of children by their jobs are collected before the stage’s function ends', async () => {
  const { rpc, collected } = jobEngine({ due: [due(1)], collect: [6] });
  await wake(rpc, { apikey: 'k' });
  expect(collected).toEqual([[6]]);
});

test('COMPLETION_POLL_INTERVAL is passed on to the engine', async () => {
  const { rpc, polled } = jobEngine();
  await wake(rpc, { apikey: 'k' }, { COMPLETION_POLL_INTERVAL: '1500' });
  expect(polled).toEqual([{ p_limit: 20, p_poll_ms: 1_500 }]);
});

test('a wake-up of the poller is answered at once, to callers with the wake-up secret or the secret key only', async () => {
  const { rpc } = jobEngine();
  expect(await wake(rpc, { apikey: 'sb_secret_b' }, { MILLRACE_WAKE_SECRET: 'r' })).toEqual({
    status: 401,
    started: 0,
  });
  expect(await wake(rpc, { apikey: 'k' })).toEqual({ status: 202, started: 1 });
  const woken = (shown: string) => wake(rpc, { 'x-millrace-wake-secret': shown }, { MILLRACE_WAKE_SECRET: 'r' });
  expect(await woken('s')).toEqual({ status: 401, started: 0 });
  expect(await woken('r')).toEqual({ status: 202, started: 1 });
});
