import { expect } from 'vitest';
import { chain, type Engine, test } from '../../support/engine.ts';
import { completed, failed, runStage, Worker } from '../../support/worker.ts';

const onlyOnce = { retry: { max_attempts: 1 } };

/** A user's own trigger that queues stage `one` again whenever it shows as failed. */
async function retryByTrigger(engine: Engine) {
  await engine.sql.query(`
    create function public.again() returns trigger language plpgsql as $$
    begin
      update public.items set one_status = 'queued' where id = new.id;
      return null;
    end $$;
    create trigger again after update on public.items for each row when (new.one_status = 'failed') execute function public.again()`);
}

/** An apply function for stage `stage` with this body; `v_id` is the entity's id. */
async function withApply(engine: Engine, stage: string, statement: string) {
  await engine.sql.query('create function public.act(p_items jsonb) returns void language plpgsql as $$ begin end $$');
  await engine.pipeline(
    chain(['one', 'two'], onlyOnce).map((entry) => (entry.name === stage ? { ...entry, apply: 'public.act' } : entry)),
  );
  await engine.sql.query(`
    create or replace function public.act(p_items jsonb) returns void language plpgsql as $$
    declare v_id public.items.id%type := (p_items -> 0 ->> 'entity_id');
    begin ${statement}; end $$`);
}

test('a trigger that queues a cancelled stage anew gets a new run, and the cancelled one stays so', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one', 'two']));
  const [id] = await engine.queued('one');
  const { id: run } = await engine.run(id);
  await retryByTrigger(engine);
  await engine.sql.query('select millrace.cancel($1)', [run]);
  await engine.expectSound();
  expect(await engine.attempts(id)).toEqual(['one 1 cancelled', 'one 1 queued']);
});

test('a trigger that queues a failed stage anew gets a new run', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two'], onlyOnce));
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  const item = await worker.takeOne();
  await retryByTrigger(engine);
  await worker.complete([failed(item, { code: 'gone', message: 'gone', permanent: true })]);
  await engine.expectSound();
  expect(await engine.attempts(id)).toEqual(['one 1 failed', 'one 1 queued']);
});

test.for([
  ['deletes its row', 'delete from public.items where id = new.id', []],
  [
    'cancels its run',
    `perform millrace.cancel(r.id) from millrace.runs r where r.entity_id = new.id::text`,
    ['one 1 completed', 'two 1 skipped'],
  ],
  [
    'starts the run over',
    `update public.items set one_status = 'queued' where id = new.id`,
    ['one 1 completed superseded', 'two 1 skipped superseded', 'one 2 queued'],
  ],
])(
  'a trigger that %s when a stage shows as skipped leaves nothing to go on from, and the others of the batch go on',
  async ([, act, attempts], { engine }) => {
    const [one, two, three] = chain(['one', 'two', 'three']);
    if (!one || !two || !three) throw new Error('a chain of three');
    await engine.pipeline([one, { ...two, when: '$.entity.label == "never"' }, three]);
    const [id, other] = await engine.queued('one', 2);
    await engine.sql.query(`
    create function public.act() returns trigger language plpgsql security definer as $$ begin ${act}; return null; end $$;
    create trigger act after update on public.items for each row
    when (new.id = ${id} and new.two_status = 'skipped' and old.two_status <> 'skipped') execute function public.act()`);
    await runStage(engine, 'one');
    await engine.expectSound();
    expect(await engine.attempts(id)).toEqual(attempts);
    expect(await engine.attempts(other)).toEqual(['one 1 completed', 'two 1 skipped', 'three 1 queued']);
  },
);

// The first word is who shows it: the statement within start(), or the one within the intake of a user's update.
const startings = ['start', 'update'].flatMap((how) => ['anew', 'over'].map((what) => [how, what] as const));
const meddlings = [
  ['deletes its row', 'delete from public.items where id = new.id', []],
  [
    'cancels its run',
    `perform millrace.cancel(r.id) from millrace.runs r where r.entity_id = new.id::text and r.status = 'running'`,
    ['cancelled'],
  ],
  ['queues it again', `update public.items set one_status = 'queued' where id = new.id`, ['running']],
] as const;

test.for(startings.flatMap((starting) => meddlings.map((meddling) => [...starting, ...meddling] as const)))(
  '%s of a run %s leaves nothing behind where a trigger, once it shows as queued, %s',
  async ([how, what, , act, ends], { engine }) => {
    await engine.pipeline(chain(['one', 'two']));
    const [id] = await engine.queued('one');
    await runStage(engine, 'one');
    if (what === 'anew') await runStage(engine, 'two');
    await engine.sql.query(`
    create function public.act() returns trigger language plpgsql security definer as $$ begin
      if pg_trigger_depth() = ${how === 'start' ? 1 : 2} then ${act}; end if; return null; end $$;
    create trigger act after update on public.items for each row when (new.one_status = 'queued') execute function public.act()`);
    if (how === 'start') await engine.sql.query(`select millrace.start('flow', $1, p_restart => true)`, [id]);
    else await engine.sql.query(`update public.items set one_status = 'queued' where id = $1`, [id]);
    await engine.expectSound();
    const last = `select status::text from millrace.runs where entity_id = $1 order by id desc limit 1`;
    expect((await engine.rows(last, [String(id)])).map((run) => run.status)).toEqual(ends);
  },
);

test('starting a live run over shows no failure on the way, so a trigger on failures stays quiet', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one', 'two']));
  const [id] = await engine.queued('one');
  await (await Worker.of(engine, 'one')).takeOne();
  await retryByTrigger(engine);
  await engine.sql.query('select millrace.start($1, $2, p_restart => true)', ['flow', id]);
  await engine.expectSound();
  expect(await engine.attempts(id)).toEqual(['one 1 cancelled superseded', 'one 2 queued']);
});

test('a retry whose trigger goes on in another run leaves what that shows as it is', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  await worker.report(failed(await worker.takeOne(), { code: 'gone', message: 'gone', permanent: true }));
  await engine.sql.query(`
    create function public.act() returns trigger language plpgsql security definer as $$ begin
      perform millrace.cancel(millrace.run_of('flow', new.id::text));
      perform millrace.complete_stage(millrace.start('flow', new.id::text), 'one', '1');
      return null; end $$;
    create trigger act after update on public.items for each row
    when (new.one_status = 'queued' and pg_trigger_depth() = 0) execute function public.act()`);
  await engine.sql.query('select millrace.retry($1)', [(await engine.run(id)).id]);
  expect(await engine.statuses(id)).toEqual({ one: 'completed', two: 'queued' });
});

test('an apply that starts its own stage over makes its completion stale', async ({ engine }) => {
  await withApply(engine, 'one', `update public.items set one_status = 'queued' where id = v_id`);
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  const { items } = await worker.complete([completed(await worker.takeOne(), 1)]);
  expect(items).toMatchObject([{ verdict: 'stale' }]);
  await engine.expectSound();
  expect(await engine.attempts(id)).toEqual(['one 1 cancelled superseded', 'one 2 queued']);
});

test('an apply of the last stage that queues the first starts the run over', async ({ engine }) => {
  await withApply(engine, 'two', `update public.items set one_status = 'queued' where id = v_id`);
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  await runStage(engine, 'two');
  await engine.expectSound();
  expect((await engine.run(id)).status).toBe('running');
});

test('an apply that deletes its entity leaves nothing behind', async ({ engine }) => {
  await withApply(engine, 'one', 'delete from public.items where id = v_id');
  await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  const { items } = await worker.complete([completed(await worker.takeOne(), 1)]);
  expect(items).toMatchObject([{ verdict: 'stale' }]);
  expect(await engine.rows('select from millrace.attempts where output is not null')).toEqual([]);
});

test('an apply function that was dropped fails the attempt by name', async ({ engine }) => {
  await withApply(engine, 'one', 'null');
  const [id] = await engine.queued('one');
  await engine.sql.query('drop function public.act(jsonb)');
  const worker = await Worker.of(engine, 'one');
  await worker.complete([completed(await worker.takeOne(), 1)]);
  expect(await engine.item(id)).toMatchObject({
    one_status: 'failed',
    one_error: 'the database refused to record this (sql_MR004) (attempt 1)',
  });
  expect(await engine.value('select error_message from millrace.dead_letters')).toMatch(/public\.act/);
});

test('one pipeline whose table is gone does not keep the sweep from the others', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const [id] = await engine.queued('one');
  await (await Worker.of(engine, 'one')).takeOne();
  await engine.sql.query('create table public.others (id bigint primary key)');
  await engine.define({
    pipeline: 'aside',
    entity: { table: 'public.others', key: 'id', projection: 'none' },
    stages: [{ name: 'one' }],
  });
  await engine.sql.query('insert into public.others values (1)');
  await engine.sql.query(`select millrace.start('aside', '1')`);
  await (await Worker.of(engine, 'one', 'aside')).takeOne();
  await engine.sql.query('drop table public.others');
  await engine.advance('61 seconds');
  await engine.sql.query('select millrace.sweep()');
  expect(await engine.attempts(id)).toContain('one 1 failed');
});

test('a row whose trigger refuses every write does not keep the sweep from the others', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const ids = await engine.queued('one', 3);
  await (await Worker.of(engine, 'one')).take();
  await engine.sql.query(`
    create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'never'; end $$;
    create trigger refuse before update on public.items for each row when (old.id::text = '${ids[1]}') execute function public.refuse()`);
  await engine.advance('61 seconds');
  await engine.sql.query('select millrace.sweep()');
  for (const id of ids) expect(await engine.attempts(id)).toContain('one 1 failed');
});

test('a Vault that cannot decrypt is reported and never fails a user’s write', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await engine.sql.query(`
    create or replace function millrace.setting(p_name text) returns text language plpgsql stable set search_path = pg_catalog, pg_temp
    as $$ begin raise exception 'cannot decrypt'; end $$`);
  const [id] = await engine.queued('one');
  expect(await engine.item(id)).toMatchObject({ one_status: 'queued' });
  expect(await engine.value(`select message from millrace.log where code = 'wake_up_failed'`)).toMatch(
    /cannot decrypt/,
  );
  expect(await engine.rows(`select ok from millrace.doctor() where what = 'project_url is set'`)).toEqual([
    { ok: false },
  ]);
});

test('a pipeline with live runs cannot move to another table', async ({ engine }) => {
  const definition = await engine.pipeline(chain(['one']));
  await engine.queued('one');
  await engine.sql.query('create table public.others (id bigint primary key)');
  const moved = { ...definition, entity: { table: 'public.others', key: 'id', projection: 'none' } };
  expect(await engine.refusedDefinition(moved)).toMatchObject({
    code: 'MR001',
    message: expect.stringMatching(/1 live run is/),
  });
});

test('keys of a fixed length, such as char(26), are matched whole', async ({ engine }) => {
  await engine.sql.query('create table public.others (id char(26) primary key, label text)');
  await engine.define({
    pipeline: 'aside',
    entity: { table: 'public.others', key: 'id', projection: 'none' },
    stages: [{ name: 'one' }],
  });
  await engine.sql.query(`insert into public.others values ('01JDABCDEFGHJKMNPQRSTVWXYZ', 'first')`);
  await engine.sql.query(`select millrace.start('aside', '01JDABCDEFGHJKMNPQRSTVWXYZ')`);
  const worker = await Worker.of(engine, 'one', 'aside');
  const item = await worker.takeOne();
  expect(item.entity).toMatchObject({ label: 'first' });
  expect((await worker.complete([completed(item, 1)])).items).toMatchObject([{ verdict: 'accepted' }]);
});

test('a function in a session’s temporary schema never runs as the owner', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const ids = await engine.insert();
  const user = await engine.database.connect();
  await user.query(`
    create table public.caught (who text);
    create function pg_temp.spy(p_text pg_catalog.text) returns boolean language plpgsql as
      $$ begin insert into public.caught values (current_user); return true; end $$;
    create domain pg_temp.text as pg_catalog.text check (pg_temp.spy(value))`);
  await user.query(`update public.items set one_status = 'queued' where id = any ($1)`, [ids]);
  expect(await engine.rows('select who from public.caught')).toEqual([]);
});

test('a job that was submitted for another run changes nothing', async ({ engine }) => {
  await engine.pipeline([{ name: 'one', kind: 'external', completion: { callback: true } }]);
  const [id] = await engine.queued('one');
  const item = await (await Worker.of(engine, 'one')).takeOne();
  const end = { submission: item.submission, service: 'scraper', job_id: 'job-1', outcome: 'completed', result: 1 };
  const resume = (extra: object) =>
    engine.value<{ items: { verdict: string }[] }>('select public.millrace_resume($1)', [
      JSON.stringify([{ ...end, ...extra }]),
    ]);
  expect((await resume({ trace_id: '00000000-0000-4000-8000-000000000000' })).items).toMatchObject([
    { verdict: 'stale' },
  ]);
  expect((await resume({ stage: 'other' })).items).toMatchObject([{ verdict: 'stale' }]);
  expect(await engine.attempts(id)).toEqual(['one 1 started']);
  expect((await resume({ stage: 'one', trace_id: item.trace_id })).items).toMatchObject([{ verdict: 'accepted' }]);
});
