import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createEngine, type Engine, type Row } from '../support/engine.ts';
import { completed, runStage, Worker } from '../support/worker.ts';

const [red, blue] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'];
const claims = (account?: string) => ({
  sub: '33333333-3333-4333-8333-333333333333',
  app_metadata: { account_id: account },
});

let engine: Engine;
let tenant: pg.Client;
let anon: pg.Client;
let stranger: pg.Client;
let own: string;
let foreign: string;

beforeAll(async () => {
  engine = await createEngine('project');
  tenant = await engine.database.connect('authenticated', claims(red));
  stranger = await engine.database.connect('authenticated', { ...claims(), user_metadata: { account_id: red } });
  anon = await engine.database.connect('anon');
});
beforeEach(async () => {
  await engine.sql.query('truncate public.leads');
  const lead = (account: string) =>
    engine.value<string>(
      `insert into public.leads (email, company_url, account_id) values ('a@b.test', 'http://b.test', $1) returning id`,
      [account],
    );
  [own, foreign] = [await lead(red), await lead(blue)];
});
afterAll(async () => {
  await engine.expectSound();
  await engine.database.drop();
});

const ids = async (client: pg.Client, table = 'public.leads') =>
  (await client.query<{ id: string }>(`select id from ${table}`)).rows.map((row) => row.id);
const count = async (client: pg.Client, statement: string, values: unknown[] = []) =>
  (await client.query(statement, values)).rowCount;

describe('a tenant', () => {
  it('sees its own leads and their progress, and nobody else’s', async () => {
    await engine.sql.query(`update public.leads set scrape_status = 'queued'`);
    expect(await ids(tenant)).toEqual([own]);
    expect(await ids(tenant, 'public.lead_pipeline_status')).toEqual([own]);
    const { rows } = await tenant.query('select current_stage, current_status from public.lead_pipeline_status');
    expect(rows).toEqual([{ current_stage: 'scrape', current_status: 'queued' }]);
  });

  it('starts its own leads with one update, and touches nobody else’s', async () => {
    expect(await count(tenant, `update public.leads set scrape_status = 'queued'`)).toBe(1);
    expect(await engine.attempts(own)).toEqual(['scrape 1 queued']);
    expect(await engine.attempts(foreign)).toEqual([]);
    expect(await count(tenant, `update public.leads set scrape_status = 'queued' where id = $1`, [foreign])).toBe(0);
    expect(await count(tenant, 'delete from public.leads where id = $1', [foreign])).toBe(0);
  });

  it('restarts and deletes its own leads while their stage runs', async () => {
    await tenant.query(`update public.leads set scrape_status = 'queued'`);
    const worker = await Worker.of(engine, 'scrape', 'leads');
    const held = await worker.takeOne();
    await tenant.query(`update public.leads set scrape_status = 'queued'`);
    expect(await engine.attempts(own)).toEqual(['scrape 1 cancelled superseded', 'scrape 2 queued']);
    await tenant.query('delete from public.leads');
    expect(await worker.report(completed(held))).toEqual(['stale']);
    expect(await engine.rows('select * from millrace.runs')).toEqual([]);
    await worker.leave();
  });

  it('has its one lead begun at each stage behind another’s thousand', async () => {
    const insert = `insert into public.leads (email, company_url, account_id, scrape_status)
      select 'a@b.test', 'http://b.test', $1, 'queued' from generate_series(1, $2)`;
    await engine.sql.query(insert, [blue, 1000]);
    await tenant.query(`update public.leads set scrape_status = 'queued'`);
    for (const stage of ['scrape', 'intel', 'strategy', 'subject', 'messaging']) {
      const worker = await Worker.of(engine, stage, 'leads');
      const batch = await worker.take(10);
      expect(
        batch.map((item) => item.entity_id),
        stage,
      ).toContain(own);
      expect(batch).toHaveLength(10);
      // Other ready rows go on to the next stage as well, in front of the one.
      await worker.complete(batch.filter((item) => item.entity_id !== own).map((item) => completed(item)));
      await worker.complete(batch.filter((item) => item.entity_id === own).map((item) => completed(item)));
      const rest = await worker.take(50);
      await worker.complete(rest.map((item) => completed(item)));
      await worker.leave(true);
    }
  });

  it('has no more than its share in work', async () => {
    const insert = `insert into public.leads (email, company_url, account_id, scrape_status)
      select 'a@b.test', 'http://b.test', $1, 'queued' from generate_series(1, $2)`;
    await engine.sql.query(insert, [red, 100]);
    const worker = await Worker.of(engine, 'scrape', 'leads');
    expect(await worker.take(100)).toHaveLength(25);
    await engine.sql.query(insert, [blue, 100]);
    expect(await worker.take(100)).toHaveLength(25);
    await worker.leave(true);
  });

  it('hears of a status it may not write by hand', async () => {
    for (const status of ['completed', 'started', 'failed', 'skipped']) {
      expect(await engine.refusal(`update public.leads set intel_status = '${status}'`, [], tenant)).toMatchObject({
        code: 'MR005',
      });
    }
  });

  it('adds leads to its own account only', async () => {
    const insert = `insert into public.leads (email, company_url, account_id) values ('c@d.test', 'http://d.test', $1)`;
    expect(await count(tenant, insert, [red])).toBe(1);
    expect(await engine.refusal(insert, [blue], tenant)).toMatchObject({
      code: '42501',
      message: expect.stringMatching(/row-level security/),
    });
    expect(await engine.refusal(`update public.leads set account_id = $1`, [blue], tenant)).toMatchObject({
      code: '42501',
    });
  });

  it('changes its inputs, and no result, error, job, count or time of any stage', async () => {
    expect(await count(tenant, `update public.leads set email = 'new@b.test', company_url = 'http://new.test'`)).toBe(
      1,
    );
    const columns = await engine.rows<{ name: string }>(
      `select attname as name from pg_attribute where attrelid = 'public.leads'::regclass and attnum > 0 and not attisdropped`,
    );
    const writable = (name: string) => ['email', 'company_url'].includes(name) || name.endsWith('_status');
    const guarded = columns.map((column) => column.name).filter((name) => !writable(name));
    expect(guarded).toEqual(expect.arrayContaining(['scrape_result', 'intel_error', 'messaging_completed_at']));
    for (const name of guarded) {
      expect(await engine.refusal(`update public.leads set ${name} = default`, [], tenant)).toMatchObject({
        code: '42501',
      });
    }
    expect(
      await engine.refusal(
        `insert into public.leads (email, company_url, account_id, scrape_result) values ('e', 'f', $1, '{}')`,
        [red],
        tenant,
      ),
    ).toMatchObject({ code: '42501' });
  });

  it('sees the costs of its own leads by the view alone, and cannot ask after those of others', async () => {
    expect((await tenant.query('select account_id, leads from public.lead_costs')).rows).toEqual([
      { account_id: red, leads: '1' },
    ]);
    for (const call of [
      `millrace_evidence.entity_costs('leads', array['${foreign}'])`,
      `millrace_evidence.document_job('${foreign}')`,
      `millrace_evidence.document_phases('${foreign}')`,
    ]) {
      expect(await engine.refusal(`select ${call}`, [], tenant), call).toMatchObject({
        code: '42501',
        message: 'permission denied for schema millrace_evidence',
      });
    }
  });

  it('cannot truncate the table or take its triggers away', async () => {
    for (const statement of [
      'truncate public.leads',
      'alter table public.leads disable trigger all',
      'drop table public.leads',
    ]) {
      expect(await engine.refusal(statement, [], tenant)).toMatchObject({ code: '42501' });
    }
    expect(await engine.refusal('update public.lead_pipeline_status set email = null', [], tenant)).toMatchObject({
      code: expect.any(String),
    });
  });
});

describe('others', () => {
  it('a signed-in user without an account in app_metadata sees nothing, whatever user_metadata says', async () => {
    expect(await ids(stranger)).toEqual([]);
    expect(await ids(stranger, 'public.lead_pipeline_status')).toEqual([]);
    expect(await count(stranger, `update public.leads set scrape_status = 'queued'`)).toBe(0);
  });

  it('anon reaches neither the leads nor their progress', async () => {
    for (const statement of [
      'select * from public.leads',
      'select * from public.lead_pipeline_status',
      `insert into public.leads (email, company_url, account_id) values ('a', 'b', '${red}')`,
      `update public.leads set scrape_status = 'queued'`,
      'delete from public.leads',
    ]) {
      expect(await engine.refusal(statement, [], anon)).toMatchObject({ code: '42501' });
    }
  });

  it('service_role sees all leads and starts them through the same intake', async () => {
    const service = await engine.database.connect('service_role');
    expect((await ids(service)).sort()).toEqual([own, foreign].sort());
    expect(await count(service, `update public.leads set scrape_status = 'queued'`)).toBe(2);
    expect(await engine.refusal(`update public.leads set intel_status = 'completed'`, [], service)).toMatchObject({
      code: 'MR005',
    });
  });
});

it('lead_pipeline_status names the first stage that is not completed, with its error, and completed at the end', async () => {
  const view = async (): Promise<Row | undefined> =>
    (
      await engine.rows(
        'select current_stage, current_status, current_error, completed_at from public.lead_pipeline_status where id = $1',
        [own],
      )
    )[0];
  expect(await view()).toMatchObject({ current_stage: 'scrape', current_status: 'pending' });
  // Workers of leads in the tests before report no more.
  await engine.advance('16 seconds');
  await engine.sql.query(`update public.leads set scrape_status = 'queued' where id = $1`, [own]);
  await runStage(engine, 'scrape', 'leads');
  expect(await view()).toMatchObject({ current_stage: 'intel', current_status: 'queued', completed_at: null });
  await engine.sql.query('select millrace.cancel($1)', [(await engine.run(own)).id]);
  expect(await view()).toMatchObject({ current_stage: 'intel', current_status: 'failed', current_error: 'cancelled' });
  await engine.sql.query('select millrace.retry($1)', [(await engine.run(own)).id]);
  for (const stage of ['intel', 'strategy', 'subject', 'messaging']) await runStage(engine, stage, 'leads');
  expect(await view()).toEqual({
    current_stage: 'completed',
    current_status: 'completed',
    current_error: null,
    completed_at: await engine.now(),
  });
});

it('a message that somebody skipped ends the lead’s way, and does not count as written', async () => {
  await engine.sql.query(`update public.leads set scrape_status = 'queued' where id = $1`, [own]);
  for (const stage of ['scrape', 'intel']) await runStage(engine, stage, 'leads');
  const skip = async (stage: string) =>
    engine.sql.query('select millrace.skip($1, $2)', [(await engine.run(own)).id, stage]);
  await skip('strategy');
  const view = () =>
    engine.rows(
      'select current_stage, current_status, strategy_status, messaging_status from public.lead_pipeline_status where id = $1',
      [own],
    );
  expect(await view()).toMatchObject([{ current_stage: 'subject', strategy_status: 'skipped' }]);
  await runStage(engine, 'subject', 'leads');
  await skip('messaging');
  expect(await view()).toMatchObject([{ current_stage: 'completed', messaging_status: 'skipped' }]);
  const written = `select count(*)::int from public.leads where messaging_status = 'completed'`;
  expect(await engine.value(written)).toBe(0);
});
