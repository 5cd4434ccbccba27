// Paths, layers, lookup table and history of a status column.
import { expect } from 'vitest';
import { historyOf, makeNotes, valuesOf } from '../../support/engine/status.ts';
import { type Engine, test } from '../../support/engine.ts';
import { completed, failed, runStage, Worker } from '../../support/worker.ts';

async function insert(engine: Engine, code: number | null = 110, label = 'a'): Promise<string> {
  return engine.value<string>('insert into public.note (label, status_code) values ($1, $2) returning id', [
    label,
    code,
  ]);
}

const code = (engine: Engine, id: string) =>
  engine.value<number>('select status_code from public.note where id = $1', [id]);

test('one transition passes several values, writes the row once, and all of them are in the history', async ({
  engine,
}) => {
  await makeNotes(engine);
  await engine.sql.query(`
    create table public.note_writes (status_code smallint);
    create function public.count_write() returns trigger language plpgsql as $$
    begin insert into public.note_writes values (new.status_code); return null; end $$;
    create trigger count_write after update on public.note for each row execute function public.count_write()`);
  const id = await insert(engine, 100);
  expect(await code(engine, id)).toBe(110);
  for (const stage of ['fetch', 'score', 'summarize', 'tag']) await runStage(engine, stage, 'notes');
  expect(await code(engine, id)).toBe(300);
  expect(await valuesOf(engine, id)).toEqual([
    100, 110, 111, 112, 120, 121, 122, 200, 210, 211, 212, 220, 221, 222, 240, 300,
  ]);
  const writes = await engine.rows('select status_code from public.note_writes');
  expect(writes.map((row) => row.status_code)).toEqual([110, 111, 120, 121, 210, 211, 220, 221, 300]);
});

test('the history says who, when and how long', async ({ engine }) => {
  await makeNotes(engine);
  const id = await insert(engine);
  await engine.advance('40 days');
  const worker = await Worker.of(engine, 'fetch', 'notes');
  const item = await worker.takeOne();
  await engine.advance('3 seconds');
  await worker.report(completed(item));
  expect(
    await engine.rows(
      `select from_status, to_status, changed_by, duration_ms::float8 as took, changed_at from public.note_history order by id`,
    ),
  ).toEqual([
    {
      from_status: null,
      to_status: 110,
      changed_by: 'user:postgres',
      took: null,
      changed_at: at('2026-11-02T09:00:00Z'),
    },
    {
      from_status: 110,
      to_status: 111,
      changed_by: 'agent:fetch',
      took: 3_456_000_000,
      changed_at: at('2026-12-12T09:00:00Z'),
    },
    { from_status: 111, to_status: 112, changed_by: 'agent:fetch', took: 3000, changed_at: at('2026-12-12T09:00:03Z') },
    { from_status: 112, to_status: 120, changed_by: 'system:auto', took: 0, changed_at: at('2026-12-12T09:00:03Z') },
  ]);
  expect(await engine.value('select status_changed_at from public.note where id = $1', [id])).toEqual(
    at('2026-12-12T09:00:03Z'),
  );
});

const at = (time: string) => new Date(time);

test('a claim of a row that another transaction has locked leaves no gap in the history', async ({ engine }) => {
  await makeNotes(engine);
  const [a, b] = [await insert(engine), await insert(engine)];
  const holder = await engine.database.connect();
  const worker = await Worker.of(engine, 'fetch', 'notes');
  await holder.query('begin');
  await holder.query('select from public.note for update');
  const [first, second] = await worker.take(2);
  await holder.query('commit');
  if (!first || !second) throw new Error('nothing claimed');
  expect(await code(engine, a)).toBe(110);
  await worker.report(completed(first), failed(second, { code: 'not_found', permanent: true }));
  expect(await valuesOf(engine, a)).toEqual([110, 111, 112, 120]);
  expect(await valuesOf(engine, b)).toEqual([110, 111, 510]);
});

test('a stage that is left out leaves no value behind', async ({ engine }) => {
  await makeNotes(engine);
  const id = await insert(engine, 110, 'manual');
  await runStage(engine, 'fetch', 'notes');
  expect(await valuesOf(engine, id)).toEqual([110, 111, 112, 200, 210]);
});

test('another order of the stages is one line, which runs under way do not follow', async ({ engine }) => {
  const definition = await makeNotes(engine);
  const early = await insert(engine);
  const stage = (name: string) => definition.stages.find((one) => one.name === name) as { needs: string[] };
  stage('tag').needs = ['score'];
  stage('summarize').needs = ['tag'];
  stage('review').needs = ['summarize'];
  await engine.define(definition);
  const late = await insert(engine);
  for (const name of ['fetch', 'score', 'summarize', 'tag', 'summarize']) await runStage(engine, name, 'notes');
  const enrichment = [200, 210, 211, 212, 220, 221, 222, 240, 300];
  expect((await valuesOf(engine, early)).slice(6)).toEqual(enrichment);
  expect((await valuesOf(engine, late)).slice(6)).toEqual([200, 220, 221, 222, 210, 211, 212, 240, 300]);
  expect(
    await engine.rows('select code from public.note_lookup where code between 200 and 299 order by sort_order'),
  ).toEqual([200, 220, 221, 222, 210, 211, 212, 240].map((code) => ({ code })));
});

test('define() fills the lookup table, writes what has changed alone, and a value that is dropped stays there', async ({
  engine,
}) => {
  const definition = await makeNotes(engine);
  expect(await engine.rows('select * from public.note_lookup where code in (110, 510) order by code')).toEqual([
    {
      code: 110,
      name: 'to_fetch',
      description: 'Ready to fetch',
      category: 'discovery',
      is_terminal: false,
      sort_order: 2,
    },
    {
      code: 510,
      name: 'unreachable',
      description: 'Not found',
      category: 'terminal',
      is_terminal: true,
      sort_order: 23,
    },
  ]);
  const written = await engine.value('select xmin::text from public.note_lookup where code = 110');
  const { values } = definition.entity.status as { values: Record<string, Record<string, unknown>> };
  delete values.terminal?.[510];
  Object.assign(definition.stages[0] ?? {}, { shows: { queued: 110, started: 111, completed: 112 } });
  await engine.define(definition);
  expect(await engine.value('select xmin::text from public.note_lookup where code = 110')).toBe(written);
  expect(await engine.value('select count(*)::int from public.note_lookup where code = 510')).toBe(1);
  expect(
    await engine.rows(
      `select value, retired from millrace.status_values v join millrace.pipelines p on p.id = v.pipeline_id
       where p.name = 'notes' and value in ('500', '510') order by retired`,
    ),
  ).toEqual([
    { value: '500', retired: false },
    { value: '510', retired: true },
  ]);
});

test('a token says who moved a row, and a name that is set counts for service_role and the owner alone', async ({
  engine,
}) => {
  await makeNotes(engine);
  const connect = (role: string, claims: Record<string, unknown>) => engine.database.connect(role, claims);
  const signedIn = [
    await connect('authenticated', { sub: 'u-1' }),
    await connect('authenticated', { sub: 'u-1', email: 'ann@news.test' }),
    await connect('authenticated', { sub: 'u-1', email: 'a@b.test', app_metadata: { name: 'ann' } }),
    await connect('service_role', {}),
    engine.sql,
  ];
  for (const session of signedIn) {
    await session.query(`insert into public.note (status_code) values (110)`);
    await session.query(`select set_config('millrace.actor', 'rick', false)`);
    await session.query(`insert into public.note (status_code) values (110)`);
    await session.query(`select set_config('millrace.actor', '', false)`);
  }
  const actors = await engine.rows<{ changed_by: string }>('select changed_by from public.note_history order by id');
  expect(actors.map((row) => row.changed_by)).toEqual([
    'user:u-1',
    'user:u-1',
    'user:ann@news.test',
    'user:ann@news.test',
    'user:ann',
    'user:ann',
    'user:service_role',
    'user:rick',
    'user:postgres',
    'user:rick',
  ]);
});

test('the column of changes goes into the history with the value that a person writes', async ({ engine }) => {
  await makeNotes(engine);
  const id = await insert(engine, 110);
  for (const stage of ['fetch', 'score', 'summarize', 'tag']) await runStage(engine, stage, 'notes');
  await engine.sql.query('update public.note set status_code = 310 where id = $1', [id]);
  await engine.sql.query('update public.note set status_code = 320 where id = $1', [id]);
  const changes = { title: { old: 'a', new: 'b' } };
  await engine.sql.query('update public.note set title = $2, status_changes = $3 where id = $1', [id, 'b', changes]);
  await engine.sql.query('update public.note set status_code = 330 where id = $1', [id]);
  expect(await engine.rows('select to_status, changes from public.note_history where changes is not null')).toEqual([
    { to_status: 330, changes },
  ]);
  expect(await engine.value('select status_changes from public.note where id = $1', [id])).toBe(null);
  expect((await historyOf(engine, id)).slice(-4)).toEqual([
    '240>300 system:auto',
    '300>310 user:postgres',
    '310>320 user:postgres',
    '320>330 user:postgres',
  ]);
});

test('nobody forges since when a value stands', async ({ engine }) => {
  await makeNotes(engine);
  const id = await insert(engine);
  await engine.sql.query(`update public.note set status_changed_at = '2000-01-01' where id = $1`, [id]);
  expect(await engine.value('select status_changed_at from public.note where id = $1', [id])).toEqual(
    at('2026-11-02T09:00:00Z'),
  );
});

test('check_invariants() names a row that does not show its run, and a history that is no chain', async ({
  engine,
}) => {
  await makeNotes(engine);
  const id = await insert(engine);
  const rules = async () =>
    (await engine.rows('select rule from millrace.check_invariants() order by 1')).map((row) => row.rule);
  await engine.sql.query('set session_replication_role = replica').catch(() => {});
  await engine.sql.query('alter table public.note disable trigger user');
  await engine.sql.query('update public.note set status_code = 400 where id = $1', [id]);
  expect(await rules()).toEqual(['a history ends at the value of its row', 'a row shows where its run stands']);
  await engine.sql.query('update public.note set status_code = 110 where id = $1', [id]);
  await engine.sql.query(
    `insert into public.note_history (note_id, from_status, to_status, changed_at, changed_by)
     values ($1, 110, 112, now(), 'x'), ($1, 111, 110, now(), 'x')`,
    [id],
  );
  expect(await rules()).toEqual(['a history is a chain of legal moves', 'a history is a chain of legal moves']);
  await engine.sql.query('delete from public.note_history where id > 1');
  await engine.sql.query('alter table public.note enable trigger user');
});

test('a row whose conditions leave every stage out goes from where it entered to the last value, by legal moves', async ({
  engine,
}) => {
  await makeNotes(engine, ({ stages }) => {
    for (const stage of stages) Object.assign(stage, { when: '$.entity.label != "none"' });
  });
  for (const entered of [100, 110]) {
    expect(await valuesOf(engine, await insert(engine, entered, 'none'))).toEqual([entered, 400]);
  }
  await engine.expectSound();
});
