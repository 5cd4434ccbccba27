// The error of a user's own trigger for one row, "try again" above all, concerns that row alone.
import type pg from 'pg';
import { expect } from 'vitest';
import { collectChildren, endFiles, waitingFolder } from '../../support/engine/children.ts';
import { chain, type Engine, test } from '../../support/engine.ts';
import { openTransaction } from '../../support/sessions.ts';
import { type Claimed, completed, Worker, waiting } from '../../support/worker.ts';

const external = { kind: 'external', completion: { callback: true, deadline_seconds: 300 } };

/** Has each write of an item ask for the account of its label, and hear at once when somebody holds it. */
async function accounts(engine: Engine, how = 'for update nowait'): Promise<void> {
  await engine.sql.query(`
    create table public.accounts (name text primary key);
    insert into public.accounts select 'item ' || n from generate_series(1, 60) n;
    create function public.ask() returns trigger language plpgsql security definer as $$
    begin perform from public.accounts a where a.name = new.label ${how}; return new; end $$;
    create trigger ask before update on public.items for each row execute function public.ask()`);
}

/** A session that keeps these accounts until it is told to go. */
async function holding(engine: Engine, ...names: string[]): Promise<pg.Client> {
  const user = await openTransaction(engine);
  await user.query('select from public.accounts where name = any ($1) for update', [names]);
  return user;
}

/** Has each write of this item raise this SQLSTATE, by hand. */
async function raising(engine: Engine, label: string, code: string): Promise<void> {
  await engine.sql.query(`
    create or replace function public.refuse() returns trigger language plpgsql as $$
    begin raise exception 'not today' using errcode = '${code}'; end $$;
    create or replace trigger refuse before update on public.items
    for each row when (old.label = '${label}') execute function public.refuse()`);
}

const sweep = (engine: Engine) => engine.value<{ leases: number; deadlines: number }>('select millrace.sweep()');
const passedOver = (engine: Engine) =>
  engine.rows(
    `select detail ->> 'entity_id' as id, detail ->> 'stage' as stage from millrace.log where code = 'row_passed_over'`,
  );

/** Reports all as completed; the verdicts by entity. */
async function verdicts(worker: Worker, batch: Claimed[]): Promise<Record<string, string>> {
  const { items } = await worker.complete(batch.map((item) => completed(item)));
  return Object.fromEntries(batch.map((item, place) => [item.entity_id, items[place]?.verdict ?? '']));
}

test('a row whose trigger meets a lock keeps the sweep from no other lease', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const ids = await engine.queued('only', 3);
  await (await Worker.of(engine, 'only')).take();
  await accounts(engine);
  const user = await holding(engine, 'item 2');
  await engine.advance('61 seconds');
  expect(await sweep(engine)).toMatchObject({ leases: 2 });
  expect(await engine.attempts(ids[1])).toEqual(['only 1 started']);
  await user.query('commit');
  expect(await sweep(engine)).toMatchObject({ leases: 1 });
});

test('a row whose trigger waits for a lock holds the sweep up for moments only', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const ids = await engine.queued('only', 3);
  await (await Worker.of(engine, 'only')).take();
  await accounts(engine, 'for update');
  const user = await holding(engine, 'item 2');
  await engine.advance('61 seconds');
  expect(await sweep(engine)).toMatchObject({ leases: 2 });
  expect(await engine.attempts(ids[1])).toEqual(['only 1 started']);
  await user.query('commit');
});

test('a row that is passed over is reported once an hour, not with each sweep', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const ids = await engine.queued('only', 2);
  await (await Worker.of(engine, 'only')).take();
  await raising(engine, 'item 2', '55P03');
  await engine.advance('61 seconds');
  for (let n = 0; n < 6; n++) {
    await sweep(engine);
    await engine.advance('9 minutes');
  }
  expect(await passedOver(engine)).toEqual([{ id: ids[1], stage: 'only' }]);
  await engine.advance('7 minutes');
  await sweep(engine);
  expect(await passedOver(engine)).toHaveLength(2);
});

test.for(['55P03', '40001', '40P01', '57014', '53200', 'P0004'])(
  'SQLSTATE %s, raised by the trigger of one row, stops no deadline of another',
  async (code, { engine }) => {
    await engine.pipeline([{ name: 'only', ...external }]);
    const ids = await engine.queued('only', 3);
    const worker = await Worker.of(engine, 'only');
    await worker.complete((await worker.take()).map((item) => waiting(item, `job-${item.entity_id}`)));
    await raising(engine, 'item 1', code);
    await engine.advance('301 seconds');
    await sweep(engine);
    expect(await engine.attempts(ids[1])).toContain('only 1 failed');
    expect(await engine.attempts(ids[2])).toContain('only 1 failed');
  },
);

test('deadlines that are passed over go behind the others, also where one look takes few', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', ...external }]);
  const ids = await engine.queued('only', 6);
  const worker = await Worker.of(engine, 'only');
  await worker.complete((await worker.take()).map((item) => waiting(item, `job-${item.entity_id}`)));
  await accounts(engine);
  const user = await holding(engine, 'item 1', 'item 2', 'item 3', 'item 4');
  const held = await openTransaction(engine);
  await held.query('select from public.items where id = $1 for update', [ids[4]]);
  await engine.advance('301 seconds');
  const look = () =>
    engine.value<number>(
      `select millrace.sweep_overdue('deadlines', (select id from millrace.pipelines where name = 'flow'), 2)`,
    );
  expect(await look()).toBe(1);
  expect(await engine.attempts(ids[5])).toContain('only 1 failed');
  await user.query('commit');
  await held.query('commit');
  // Rows that were refused come by again in a minute.
  expect(await look()).toBe(1);
  await engine.advance('61 seconds');
  expect((await look()) + (await look())).toBe(4);
});

test('leases of rows that somebody holds keep none behind them waiting, however few one look takes', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'only' }]);
  const ids = await engine.queued('only', 5);
  await (await Worker.of(engine, 'only')).take();
  await engine.advance('61 seconds');
  const user = await openTransaction(engine);
  await user.query('select from public.items where id = any ($1) for update', [ids.slice(0, 4)]);
  const look = `select millrace.sweep_overdue('leases', (select id from millrace.pipelines where name = 'flow'), 2)`;
  expect(await engine.value(look)).toBe(1);
  await user.query('commit');
});

test('when a user’s trigger meets a lock, only its row is busy, and the rest of the batch is recorded', async ({
  engine,
}) => {
  await engine.pipeline(chain(['first', 'second']));
  const ids = await engine.queued('first', 20);
  const worker = await Worker.of(engine, 'first');
  const batch = await worker.take(20);
  await accounts(engine);
  const user = await holding(engine, 'item 7');
  const guilty = String(ids[6]);
  expect(await verdicts(worker, batch)).toEqual(
    Object.fromEntries(ids.map((id) => [id, id === guilty ? 'busy' : 'accepted'])),
  );
  expect(await engine.attempts(guilty)).toEqual(['first 1 started']);
  await user.query('commit');
  const late = batch.filter((item) => item.entity_id === guilty);
  expect(await verdicts(worker, late)).toEqual({ [guilty]: 'accepted' });
});

test('when a row’s trigger meets a lock, the end of its job is busy, and the others of the call are recorded', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'only', ...external }]);
  await engine.queued('only', 2);
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take();
  await worker.complete(batch.map((item) => waiting(item, `job-${item.entity_id}`)));
  await raising(engine, 'item 1', '55P03');
  const ends = batch.map((item) => ({
    submission: item.submission,
    service: 'scraper',
    job_id: `job-${item.entity_id}`,
    outcome: 'completed',
    result: {},
  }));
  const answer = await engine.value<{ items: { verdict: string }[] }>('select public.millrace_resume($1)', [
    JSON.stringify(ends),
  ]);
  const byEntity = Object.fromEntries(batch.map((item, place) => [item.entity_id, answer.items[place]?.verdict]));
  expect(byEntity).toEqual({ 1: 'busy', 2: 'accepted' });
});

test('rows that cost a call its time leave something recorded, and the rest busy', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only', 8);
  const worker = await Worker.of(engine, 'only');
  let batch = await worker.take(8);
  await accounts(engine);
  const user = await holding(engine, 'item 3', 'item 5');
  // Time passes with every look at the clock, so that the call's patience is over at once.
  await engine.sql.query(`
    create sequence public.ticks;
    grant usage on sequence public.ticks to service_role;
    create or replace function millrace.now() returns timestamptz language sql volatile set search_path = ''
    as $$ select timestamptz '2026-11-02 09:00:00+00' + nextval('public.ticks') * interval '1 second' $$`);
  const calls: number[] = [];
  while (batch.length > 2 && calls.length < 100) {
    const said = await verdicts(worker, batch);
    const left = batch.filter((item) => said[item.entity_id] === 'busy');
    calls.push(batch.length - left.length);
    batch = left;
  }
  expect(batch.map((item) => item.entity_id).sort()).toEqual(['3', '5']);
  await user.query('commit');
  await verdicts(worker, batch);
});

test('a statement timeout ends the whole call, wherever it strikes', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const ids = await engine.queued('only', 3);
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take();
  await engine.sql.query(`
    create function public.dawdle() returns trigger language plpgsql as $$ begin perform pg_sleep(20); return new; end $$;
    create trigger dawdle before update on public.items for each row when (old.label = 'item 2') execute function public.dawdle()`);
  await worker.client.query(`set statement_timeout = '300ms'`);
  await expect(worker.report(...batch.map((item) => completed(item)))).rejects.toMatchObject({ code: '57014' });
  await engine.sql.query('drop trigger dawdle on public.items');
  for (const id of ids) expect(await engine.attempts(id)).toEqual(['only 1 started']);
});

test('a claim goes on where it cannot be shown on a row for now', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only', 2);
  await raising(engine, 'item 1', '55P03');
  expect(await (await Worker.of(engine, 'only')).take()).toHaveLength(2);
  await engine.sql.query('drop trigger refuse on public.items');
});

test('a parent whose row refuses for now is collected later, and keeps what its children reported', async ({
  engine,
}) => {
  await waitingFolder(engine, 2);
  await engine.sql.query(`
    create function public.refuse() returns trigger language plpgsql as $$
    begin raise exception 'not today' using errcode = '55P03'; end $$;
    create trigger refuse before update on public.folders for each row execute function public.refuse()`);
  await endFiles(engine, [1, 2]);
  const fanOut = await engine.value<string>('select id from millrace.fan_outs');
  expect(await engine.value('select public.millrace_collect_children($1)', [[fanOut]])).toMatchObject({
    busy: [Number(fanOut)],
  });
  await sweep(engine);
  expect(await engine.rows(`select a.state from millrace.attempts a where a.service = 'children'`)).toEqual([
    { state: 'waiting' },
  ]);
  await engine.sql.query('drop trigger refuse on public.folders');
  await collectChildren(engine);
  await sweep(engine);
  expect(await engine.rows(`select a.state from millrace.attempts a where a.service = 'children'`)).toEqual([
    { state: 'completed' },
  ]);
});

test('a child whose row refuses for now is cancelled later, the others at once', async ({ engine }) => {
  await waitingFolder(engine, 3);
  await engine.sql.query(`
    create function public.refuse() returns trigger language plpgsql as $$
    begin raise exception 'not today' using errcode = '55P03'; end $$;
    create trigger refuse before update on public.items for each row when (old.number = '2') execute function public.refuse()`);
  await engine.sql.query(`select millrace.cancel(r.id) from millrace.runs r where r.fan_out_id is null`);
  await sweep(engine);
  const cancelled = `select count(*)::int from millrace.runs where fan_out_id is not null and status = 'cancelled'`;
  expect(await engine.value(cancelled)).toBe(2);
  expect(await passedOver(engine)).toEqual([{ id: '2', stage: null }]);
  await engine.sql.query('drop trigger refuse on public.items');
  await sweep(engine);
  expect(await engine.value(cancelled)).toBe(3);
});

/** Manual stages of three items that ended otherwise, of whose decisions one refuses to be touched. */
async function refusedDecision(engine: Engine): Promise<void> {
  await engine.pipeline([{ name: 'only', kind: 'manual', decision: { schema: { type: 'object' } } }]);
  await engine.queued('only', 3);
  await engine.sql.query(`select millrace.cancel(id) from millrace.runs`);
  await engine.sql.query(`
    create function public.refuse() returns trigger language plpgsql as $$ begin assert false, 'never'; return old; end $$;
    create trigger refuse before update or delete on public.millrace_decisions
    for each row when (old.attempt_id = 2) execute function public.refuse()`);
}

test('a decision whose row refuses to be closed keeps no other from it', async ({ engine }) => {
  await refusedDecision(engine);
  await sweep(engine);
  expect(
    await engine.rows(
      'select attempt_id::int as id from public.millrace_decisions where closed_at is not null order by id',
    ),
  ).toEqual([{ id: 1 }, { id: 3 }]);
});

test('a run that cannot be pruned keeps no other from it', async ({ engine }) => {
  await refusedDecision(engine);
  await engine.advance('100 days');
  expect(await engine.value('select millrace.prune()')).toMatchObject({ runs: 2 });
  expect(await engine.value('select count(*)::int from millrace.runs')).toBe(1);
});
