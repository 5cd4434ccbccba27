import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { Row } from '../support/engine.ts';
import { stages } from '../support/examples/leads-report.ts';
import { LeadsStack } from '../support/stack/stack.ts';

let leads: LeadsStack;
let alice: Tenant;
let bob: Tenant;
beforeAll(async () => {
  leads = await LeadsStack.start();
  alice = await Tenant.of('a11ce000-0000-4000-8000-000000000001');
  bob = await Tenant.of('b0b00000-0000-4000-8000-000000000002');
});
afterEach(() => leads.expectSound());
afterAll(() => leads.stop());

interface Answer {
  status: number;
  rows: Row[];
  error: { code?: string; message?: string; hint?: string };
}

/** A signed-in user of an account, who speaks to the Data API as a browser does. */
class Tenant {
  readonly account: string;
  readonly #token: string;

  private constructor(account: string, token: string) {
    this.account = account;
    this.#token = token;
  }

  static async of(account: string): Promise<Tenant> {
    const claims = { sub: account, app_metadata: { account_id: account } };
    return new Tenant(account, await leads.stack.signUserToken(claims));
  }

  async ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const response = await fetch(`${leads.stack.apiUrl}/rest/v1/${path}`, {
      method,
      headers: {
        apikey: leads.stack.publishableKey,
        authorization: `Bearer ${this.#token}`,
        'content-type': 'application/json',
        prefer: 'return=representation',
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const json = await response.json();
    const isList = Array.isArray(json);
    return { status: response.status, rows: isList ? json : [], error: isList ? {} : json };
  }

  /** Inserts a lead of the account and returns its id. */
  async insert(url: string): Promise<string> {
    const lead = { email: 'someone@example.com', company_url: url, account_id: this.account };
    const { status, rows, error } = await this.ask('POST', 'leads', lead);
    expect(status, JSON.stringify(error)).toBe(201);
    return rows[0]?.id as string;
  }
}

test('users of two accounts take their own leads through the pipeline at once, and see no other lead or progress', async () => {
  const tenants = [alice, bob];
  const ids = await Promise.all(
    tenants.map((tenant, n) => tenant.insert(leads.site.add([`Looms of valley ${n}`, 'They weave wool.']))),
  );
  for (const [n, tenant] of tenants.entries()) {
    expect((await tenant.ask('PATCH', `leads?id=eq.${ids[n]}`, { scrape_status: 'queued' })).rows).toHaveLength(1);
  }
  await leads.finished(ids);
  await leads.expectCompleted(ids);
  for (const [n, tenant] of tenants.entries()) {
    const own = await tenant.ask('GET', 'leads?select=id,messaging_result');
    expect(own.rows).toEqual([{ id: ids[n], messaging_result: expect.objectContaining({ body: expect.any(String) }) }]);
    const progress = await tenant.ask('GET', 'lead_pipeline_status?select=id,current_stage');
    expect(progress.rows).toEqual([{ id: ids[n], current_stage: 'completed' }]);
  }
});

test('a user can neither change, queue, delete nor insert leads of another account', async () => {
  const id = await alice.insert(leads.site.add(['Kilns for tiles']));
  for (const change of [{ email: 'mine@example.com' }, { scrape_status: 'queued' }]) {
    expect(await bob.ask('PATCH', `leads?id=eq.${id}`, change)).toMatchObject({ status: 200, rows: [] });
  }
  expect((await bob.ask('DELETE', `leads?id=eq.${id}`)).rows).toEqual([]);
  const planted = { email: 'a@example.com', company_url: 'https://example.com', account_id: alice.account };
  expect(await bob.ask('POST', 'leads', planted)).toMatchObject({ status: 403, error: { code: '42501' } });
  expect((await bob.ask('PATCH', 'leads?email=neq.none', { account_id: alice.account })).status).toBe(403);
  expect(await leads.lead(id)).toMatchObject({ email: 'someone@example.com', scrape_status: 'pending' });
});

test('a user cannot write a result, an error, a job or a count of any stage', async () => {
  const id = await alice.insert(leads.site.add(['Bells and clappers']));
  for (const stage of stages) {
    for (const column of ['result', 'error', 'job_id', 'retry_count', 'started_at', 'completed_at']) {
      const value = column === 'result' ? {} : column === 'retry_count' ? 1 : column.endsWith('_at') ? 'now' : 'x';
      const refusal = await alice.ask('PATCH', `leads?id=eq.${id}`, { [`${stage}_${column}`]: value });
      expect(refusal, `${stage}_${column}`).toMatchObject({ status: 403, error: { code: '42501' } });
    }
  }
  const lead = { email: 'a@example.com', company_url: 'https://example.com', account_id: alice.account };
  expect((await alice.ask('POST', 'leads', { ...lead, intel_result: {} })).status).toBe(403);
});

test('a status other than queued and pending is refused with the remedy', async () => {
  const id = await alice.insert(leads.site.add(['Ladders and scaffolds']));
  const refusal = await alice.ask('PATCH', `leads?id=eq.${id}`, { messaging_status: 'completed' });
  expect(refusal.status).toBe(400);
  expect(refusal.error).toMatchObject({ code: 'MR005', hint: expect.stringMatching(/Write 'queued'/) });
  const early = await alice.ask('PATCH', `leads?id=eq.${id}`, { messaging_status: 'queued' });
  expect(early.error).toMatchObject({
    code: expect.stringMatching(/^MR/),
    message: expect.stringMatching(/messaging/),
  });
  expect((await leads.lead(id)).messaging_status).toBe('pending');
});

test('users and strangers can call nothing of the engine', async () => {
  const calls: [string, object][] = [
    ['millrace_wake', { p_stages: [] }],
    ['millrace_resume', { p_items: [] }],
    ['millrace_poll', { p_limit: 1 }],
    ['millrace_leave', { p_worker: alice.account }],
  ];
  for (const [name, args] of calls) {
    expect((await alice.ask('POST', `rpc/${name}`, args)).error.code, name).toBe('42501');
    const asStranger = { authorization: `Bearer ${leads.stack.anonKey}` };
    expect((await alice.ask('POST', `rpc/${name}`, args, asStranger)).error.code, name).toBe('42501');
  }
  expect((await alice.ask('GET', 'runs', undefined, { 'accept-profile': 'millrace' })).status).toBe(406);
  const asStranger = { authorization: `Bearer ${leads.stack.anonKey}` };
  expect((await alice.ask('GET', 'leads', undefined, asStranger)).error.code).toBe('42501');
});
