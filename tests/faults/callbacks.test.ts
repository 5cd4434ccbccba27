import fs from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Call, type Fate, gate, send } from '../support/faults/fault-proxy.ts';
import { startServer } from '../support/http-server.ts';
import { functionsFolder } from '../support/stack/functions-folder.ts';
import { LeadsStack } from '../support/stack/stack.ts';

const functions = functionsFolder({});

let leads: LeadsStack;
/** The callbacks that have come by. */
let seen: Call[];
beforeAll(async () => {
  const env = { ALERT_ALLOW_HOSTS: '127.0.0.1' };
  leads = await LeadsStack.start({ proxies: true, functionsDir: functions.path, env });
  // Otherwise the poller could be first.
  await leads.rows(`update millrace.stages set poll_every = '1 minute'`);
});
beforeEach(() => {
  seen = [];
});
afterEach(async () => {
  const { toScraper, callbacks } = leads.proxies;
  toScraper.decide = () => 'pass';
  callbacks.decide = () => 'pass';
  await leads.expectSound();
});
afterAll(async () => {
  await leads.stop();
  functions.remove();
});

/** Lets every callback meet this fate; the call is kept. */
function meet(fate: () => Fate | Promise<Fate>): void {
  leads.proxies.callbacks.decide = (call) => {
    seen.push(call);
    return fate();
  };
}

/** Queues a lead whose callback is kept back; returns the lead's id and the callback, which has not been answered. */
async function withCallbackKept(): Promise<{ id: string; callback: Call }> {
  meet(() => ({ status: 503, json: {} }));
  const [id = ''] = await leads.queued(leads.site.add(['Lamps for lighthouses']));
  await leads.until('there is a callback', async () => seen.length > 0);
  await leads.until('it waits', async () => (await leads.timeline(id))[0]?.state === 'waiting');
  return { id, callback: seen[0] as Call };
}

/** Sends a callback to the project, as the service would; returns the status and the answer. */
async function deliver(callback: Call): Promise<{ status: number; answer: Record<string, unknown> }> {
  const { status, body } = await send(leads.stack.apiUrl, callback);
  return { status, answer: JSON.parse(body.toString()) };
}

const accepted = { status: 200, answer: { verdict: 'accepted', reason: null } };
const duplicate = { status: 200, answer: { verdict: 'duplicate', reason: null } };

test('a callback that comes twice is recorded once, and both are thanked for', async () => {
  const { id, callback } = await withCallbackKept();
  expect(await deliver(callback)).toEqual(accepted);
  expect(await deliver(callback)).toEqual(duplicate);
  await leads.finished([id]);
  await leads.expectCompleted([id]);
  expect(await deliver(callback)).toEqual(duplicate);
});

test('of callbacks that come all at once, one is recorded', async () => {
  const { id, callback } = await withCallbackKept();
  const answers = await Promise.all(Array.from({ length: 8 }, () => deliver(callback)));
  expect(answers.filter(({ answer }) => answer.verdict === 'accepted')).toHaveLength(1);
  expect(answers.every(({ status, answer }) => status === 503 || answer.verdict)).toBe(true);
  await leads.finished([id]);
  await leads.expectCompleted([id]);
});

test('a callback that comes after the poller is a duplicate', async () => {
  const { id, callback } = await withCallbackKept();
  await leads.advance('1 minute');
  await leads.rows('select millrace.wake_job_poll()');
  await leads.finished([id]);
  await leads.expectCompleted([id]);
  const before = await leads.lead(id);
  expect(await deliver(callback)).toEqual(duplicate);
  expect(await leads.lead(id)).toEqual(before);
});

test('a callback that overtakes the answer to its submission completes the stage, and the worker accepts that', async () => {
  const { passed, open } = gate();
  const keptJobs: string[] = [];
  meet(() => 'pass');
  // The scraper is told of the job at once, but its answer with the job's id stays on the way.
  leads.proxies.toScraper.decide = async (call) => {
    if (call.method !== 'POST') return 'pass';
    const { status, body } = await send(leads.proxies.toScraper.target, call);
    keptJobs.push(body.toString());
    await passed;
    return { status, json: JSON.parse(body.toString()) };
  };
  const [id = ''] = await leads.queued(leads.site.add(['Chimes for ship clocks']));
  await leads.until('scrape is completed', async () => (await leads.lead(id)).scrape_status === 'completed');
  expect(keptJobs).toHaveLength(1);
  open();
  await leads.finished([id]);
  await leads.expectCompleted([id]);
  expect((await leads.attempts(id))[0]).toBe('scrape 1 completed');
  await leads.until('the worker has left', async () =>
    leads.stack.functions.logs('leads-scrape').some((line) => /"drained".*"empty"/.test(line)),
  );
  expect(leads.stack.functions.logs('leads-scrape').join('\n')).not.toMatch(/not taken/);
});

test('a callback whose signature does not fit is refused with 401 and changes nothing', async () => {
  const { id, callback } = await withCallbackKept();
  const forgeries: Call[] = [
    { ...callback, body: callback.body.replace('lighthouses', 'greenhouses') },
    { ...callback, headers: { ...callback.headers, 'webhook-id': 'msg_another' } },
    { ...callback, headers: { ...callback.headers, 'webhook-timestamp': '1700000000' } },
    { ...callback, headers: { ...callback.headers, 'webhook-signature': 'v1,AAAA' } },
    { ...callback, headers: { ...callback.headers, 'webhook-signature': '' } },
  ];
  for (const forgery of forgeries) {
    expect(forgery).not.toEqual(callback);
    expect(await deliver(forgery)).toMatchObject({ status: 401, answer: { error: { code: 'bad_signature' } } });
  }
  expect((await leads.timeline(id)).map(({ state }) => state)).toEqual(['waiting']);
  expect(await deliver(callback)).toEqual(accepted);
  await leads.finished([id]);
});

test('a callback after the run was cancelled changes nothing and learns why', async () => {
  const { id, callback } = await withCallbackKept();
  await leads.rows('select millrace.cancel($1)', [(await leads.run(id)).id]);
  expect(await deliver(callback)).toEqual({
    status: 200,
    answer: { verdict: 'stale', reason: 'the attempt was cancelled' },
  });
  expect(await leads.lead(id)).toMatchObject({
    scrape_status: 'failed',
    scrape_error: 'cancelled',
    scrape_result: null,
  });
  expect(await leads.attempts(id)).toEqual(['scrape 1 cancelled cancelled']);
});

test('a callback about a lead that was deleted changes nothing and is thanked for', async () => {
  const { id, callback } = await withCallbackKept();
  await leads.rows('delete from public.leads where id = $1', [id]);
  expect(await deliver(callback)).toMatchObject({ status: 200, answer: { verdict: 'stale' } });
  expect(await leads.rows('select from millrace.runs where entity_id = $1', [id])).toEqual([]);
});

test('a callback of a job from before the stage was queued again does not complete the new attempt', async () => {
  const { id, callback } = await withCallbackKept();
  const first = (await leads.timeline(id))[0]?.job_id;
  await leads.queue([id]);
  await leads.until('it waits for another job', async () => {
    const last = (await leads.timeline(id)).at(-1);
    return last?.state === 'waiting' && last.job_id !== first;
  });
  expect(await deliver(callback)).toMatchObject({ status: 200, answer: { verdict: 'stale' } });
  await leads.until('its callback has come by', async () => seen.length > 1);
  expect(await deliver(seen.at(-1) as Call)).toEqual(accepted);
  await leads.finished([id]);
  await leads.expectCompleted([id]);
});

test('work that is due between a push and the deployment of function millrace waits for no more than the next sweep', async () => {
  const receiver = await startServer(() => ({}));
  await leads.rows(`insert into millrace.alert_channels (name, kind) values ('ops', 'webhook')`);
  for (const [name, secret] of [
    ['address', `${receiver.url}/hook`],
    ['secret', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
  ]) {
    await leads.rows('select vault.create_secret($1, $2)', [secret, `millrace_channel_ops_${name}`]);
  }
  await leads.rows(
    `select cron.unschedule(jobname) from cron.job where jobname in ('millrace-sweep', 'millrace-poll')`,
  );
  const [deployed, away] = ['millrace', '_not_deployed'].map((name) => path.join(functions.path, name));
  fs.renameSync(deployed as string, away as string);
  const unanswered = () => leads.value<number>('select count(*)::int from net._http_response where status_code = 404');

  const { id } = await withCallbackKept();
  await leads.advance('1 minute');
  await leads.rows(`select millrace.act_on_channel('{"channel": "ops"}')`);
  await leads.rows('select millrace.wake_job_poll()');
  await leads.until('the wake-ups have found no function', async () => (await unanswered()) >= 2);
  expect(receiver.received).toEqual([]);

  fs.renameSync(away as string, deployed as string);
  // The requests of each ten seconds, and then those of each two.
  await leads.sweep();
  await leads.until('the alert has come', async () => receiver.received.length > 0, 15_000);
  await leads.rows('select millrace.wake_job_poll()');
  await leads.until('the job is done', async () => (await leads.timeline(id))[0]?.state === 'completed', 15_000);
  await leads.finished([id]);
  await leads.expectCompleted([id]);
  expect(receiver.received.filter(({ body }) => body.includes('This is a test of channel ops.'))).toHaveLength(1);
});
