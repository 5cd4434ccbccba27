import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { StageName } from '../support/examples/leads-report.ts';
import { gate } from '../support/faults/fault-proxy.ts';
import { LeadsStack } from '../support/stack/stack.ts';
import type { ClaimAnswer, Claimed, CompleteAnswer } from '../support/worker.ts';
import { completed } from '../support/worker.ts';

let leads: LeadsStack;
beforeAll(async () => {
  leads = await LeadsStack.start({ proxies: true });
});
afterEach(async () => {
  leads.proxies.toModel.decide = () => 'pass';
  await leads.expectSound();
});
afterAll(() => leads.stop());

/** A worker of the test's own, which speaks to the engine as the functions do. */
class TestWorker {
  readonly #id = randomUUID();
  #seq = 0;

  async claim(stage: StageName): Promise<Claimed> {
    const answer = await this.#call<ClaimAnswer>('millrace_claim', {
      p_pipeline: 'leads',
      p_stage: stage,
      p_worker: this.#id,
      p_host: randomUUID(),
      p_seq: ++this.#seq,
      p_limit: 1,
    });
    const [item] = answer.batch;
    if (!item) throw new Error(`nothing to claim: ${JSON.stringify(answer)}`);
    return item;
  }

  async complete(item: Claimed, result: unknown): Promise<CompleteAnswer['items'][number] | undefined> {
    const items = [completed(item, result)];
    const call = { p_worker: this.#id, p_seq: ++this.#seq, p_items: items, p_limit: 0 };
    return (await this.#call<CompleteAnswer>('millrace_complete', call)).items[0];
  }

  async #call<T>(name: string, args: object): Promise<T> {
    const response = await fetch(`${leads.stack.apiUrl}/rest/v1/rpc/${name}`, {
      method: 'POST',
      headers: { apikey: leads.stack.secretKey, 'content-type': 'application/json' },
      body: JSON.stringify(args),
    });
    if (!response.ok) throw new Error(await response.text());
    return (await response.json()) as T;
  }
}

test('a completion after the lease went to another worker changes nothing and learns why', async () => {
  const [id = ''] = await leads.queued(leads.site.add(['Anchors and chains']));
  await leads.finished([id]);
  const session = await leads.session();
  await session.query(
    `begin; update public.leads set messaging_status = 'queued' where id = '${id}'; delete from net.http_request_queue; commit`,
  );
  const slow = new TestWorker();
  const item = await slow.claim('messaging');
  await leads.advance('2 minutes');
  await leads.sweep();
  await leads.finished([id]);
  await leads.expectCompleted([id]);
  const before = await leads.lead(id);
  expect(await slow.complete(item, { late: true })).toMatchObject({
    verdict: 'stale',
    reason: 'the lease had expired and the attempt was given up',
  });
  expect(await leads.lead(id)).toEqual(before);
  expect(await leads.attempts(id, 'messaging')).toEqual(['messaging 1 failed lost_lease', 'messaging 2 completed']);
});

test('a handler that is still at work when its lease is lost ends without a word, and the next one counts', async () => {
  const { passed, open } = gate();
  let asked = 0;
  leads.proxies.toModel.decide = () => (++asked === 1 ? passed.then(() => 'pass') : 'pass');
  const [id = ''] = await leads.queued(leads.site.add(['Compasses and sextants']));
  await leads.until('the model is asked', async () => asked === 1);
  await leads.advance('2 minutes');
  await leads.sweep();
  await leads.finished([id]);
  await leads.expectCompleted([id]);
  open();
  expect((await leads.attempts(id)).slice(1, 3)).toEqual(['intel 1 failed lost_lease', 'intel 2 completed']);
  await leads.until('the first worker has learned it', async () =>
    leads.stack.functions.logs('leads-intel').some((line) => /an outcome was not taken|leases were lost/.test(line)),
  );
});

test('pg_cron stands still: the next worker to come makes up for the sweep, and a dead worker’s lead goes on', async () => {
  await leads.stack.pgCron.stop();
  await leads.sweep();
  const [lost = '', other = ''] = await leads.insert([
    leads.site.add(['Sails and rigging']),
    leads.site.add(['Masts and spars']),
  ]);
  const session = await leads.session();
  await session.query(
    `begin; update public.leads set scrape_status = 'queued' where id = '${lost}'; delete from net.http_request_queue; commit`,
  );
  await new TestWorker().claim('scrape');
  await leads.advance('2 minutes');
  await leads.queue([other]);
  await leads.finished([lost, other]);
  await leads.expectCompleted([lost, other]);
  expect((await leads.attempts(lost)).slice(0, 2)).toEqual(['scrape 1 failed lost_lease', 'scrape 2 completed']);
});
