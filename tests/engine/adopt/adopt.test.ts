import { expect } from 'vitest';
import { historyOf, makeAdoption, makeLinks, makeNotes, valuesOf } from '../../support/engine/status.ts';
import { type Engine, projectTest, type Row, test } from '../../support/engine.ts';
import { openTransaction } from '../../support/sessions.ts';
import { finish, runStage } from '../../support/worker.ts';

/** Notes that had a status of their own, and what their old values mean; approved ones with a title are published. */
async function makeOldNotes(engine: Engine): Promise<void> {
  await makeAdoption(engine);
  await makeNotes(engine, (definition) => {
    const stage = (name: string) => definition.stages.find((one) => one.name === name) as Row;
    stage('summarize').given = '$.entity.title != null';
    stage('fetch').given = '$.entity.label != null';
  });
  await engine.sql.query(`
    alter table public.note add column status text;
    create function public.code_of(n public.note) returns smallint language sql as $$
      select case n.status when 'pending' then 200 when 'processing' then 211 when 'enriched' then 300
        when 'approved' then case when n.title = 'out' then 400 else 330 end when 'failed' then 500
        when 'seen' then 310 when 'lost' then 999 end $$;
    select millrace.attach('notes')`);
}

/** Inserts notes as they were before, by their old statuses; returns their ids. */
async function insertOld(engine: Engine, ...statuses: (string | null)[]): Promise<string[]> {
  const rows = await engine.rows<{ id: string }>(
    `insert into public.note (label, status) select 'a', s from unnest($1::text[]) with ordinality u(s, n) order by n returning id`,
    [statuses],
  );
  return rows.map(({ id }) => id);
}

const adopt = (engine: Engine, more = '', dry = false) =>
  engine.rows(`select * from millrace.adopt('notes', 'status', 'public.code_of', p_dry_run => ${dry}${more})`);

/** Adopts portion by portion; fails the test when that comes to no end. */
async function adoptAll(engine: Engine, more = ''): Promise<Row[]> {
  const told: Row[] = [];
  for (let times = 0; times < 30; times++) {
    const rows = await adopt(engine, more);
    if (rows.length === 0) return told;
    told.push(...rows);
  }
  throw new Error(`it comes to no end: ${JSON.stringify(told.slice(-3))}`);
}

const note = async (engine: Engine, id: string | undefined) =>
  (await engine.rows('select status_code as code, status from public.note where id = $1', [id]))[0];

test('the dry run tells what becomes of each old value, and writes nothing', async ({ engine }) => {
  await makeOldNotes(engine);
  await insertOld(engine, 'pending', 'pending', 'processing', 'enriched', 'approved', 'failed', null, 'lost');
  await engine.sql.query(
    `update public.note set title = 'a' where id = 4; update public.note set label = null where id = 1`,
  );
  await engine.sql.query(`insert into public.note (label, title, status) values ('a', 'out', 'approved')`);
  const told = await engine.rows(`select * from millrace.adopt('notes', 'status', 'public.code_of')`);
  const row = (old: string | null, rows: number, value: string | null, adopted_as: string | null, more: Row = {}) => ({
    old_value: old,
    rows: String(rows),
    value,
    adopted_as,
    begins: null,
    lacking: '0',
    lacks: null,
    problem: null,
    ...more,
  });
  expect(told).toEqual(
    expect.arrayContaining([
      row('pending', 2, '200', '200', { lacking: '1', lacks: 'fetch' }),
      row('processing', 1, '211', '200'),
      row('enriched', 1, '300', '300', { begins: 'review' }),
      row('approved', 1, '330', '330', { begins: 'publish', lacking: '1', lacks: 'summarize' }),
      row('approved', 1, '400', '400'),
      row('failed', 1, '500', '500'),
      row(null, 1, null, null, { problem: 'it has no value: let the function say one, or name it in p_else' }),
      row('lost', 1, '999', null, { problem: '999 is no value of pipeline notes' }),
    ]),
  );
  expect(told).toHaveLength(8);
  expect(await engine.value('select count(*)::int from public.note where status_code is not null')).toBe(0);
  expect(await engine.value('select count(*)::int from millrace.runs')).toBe(0);
});

test('a portion with a value that means nothing is refused, unless p_else names a value', async ({ engine }) => {
  await makeOldNotes(engine);
  const [, unknown] = await insertOld(engine, 'pending', 'odd');
  const refusal = await engine.refusal(
    `select * from millrace.adopt('notes', 'status', 'public.code_of', p_dry_run => false)`,
  );
  expect(refusal).toMatchObject({
    code: 'MR005',
    message: `row ${unknown} of pipeline notes has no value`,
  });
  expect(await engine.value('select count(*)::int from public.note where status_code is not null')).toBe(0);
  expect(await adopt(engine, `, p_else => '7'`, true)).toMatchObject([
    { problem: '7 is no value of pipeline notes' },
    { problem: null },
  ]);
  await adoptAll(engine, `, p_else => '500'`);
  expect(await note(engine, unknown)).toEqual({ code: 500, status: 'odd' });
});

test('each row gets its value and a first history that says what it was; work in progress waits at its gate', async ({
  engine,
}) => {
  await makeOldNotes(engine);
  const ids = await insertOld(engine, 'pending', 'processing', 'enriched', 'approved', 'failed', 'seen');
  const told = await adoptAll(engine);
  expect(told.map(({ old_value, rows, adopted_as }) => `${old_value} ${rows} ${adopted_as}`).sort()).toEqual([
    'approved 1 330',
    'enriched 1 300',
    'failed 1 500',
    'pending 1 200',
    'processing 1 200',
    'seen 1 300',
  ]);
  const codes: unknown[] = [];
  for (const id of ids) codes.push((await note(engine, id))?.code);
  expect(codes).toEqual([200, 200, 300, 330, 500, 300]);
  expect(await historyOf(engine, ids[1] as string)).toEqual(['>200 user:postgres']);
  expect(await engine.value('select changes from public.note_history where note_id = $1', [ids[1]])).toEqual({
    status: { old: 'processing', new: '200' },
  });
  expect(await engine.value('select count(*)::int from public.millrace_decisions')).toBe(2);
  expect(await engine.value(`select count(*)::int from millrace.runs`)).toBe(3);
  const [published] = await runStage(engine, 'publish', 'notes');
  expect(published?.entity_id).toBe(ids[3]);
  expect(await valuesOf(engine, ids[3] as string)).toEqual([330, 400]);
});

test('rows of which no history is kept are adopted as well', async ({ engine }) => {
  await makeAdoption(engine);
  await makeLinks(engine);
  await engine.sql.query(`
    alter table public.link add column was text;
    create function public.link_status(l public.link) returns text language sql as $$ select case l.was when 'found' then 'new' end $$;
    insert into public.link (was) values ('found'), ('found')`);
  const statement = `select * from millrace.adopt('page_links', 'was', 'public.link_status', p_dry_run => false)`;
  expect(await engine.rows(statement)).toMatchObject([
    { old_value: 'found', rows: '2', adopted_as: 'new', begins: 'classify' },
  ]);
  expect(await engine.rows(statement)).toEqual([]);
  expect(await runStage(engine, 'classify', 'page_links')).toHaveLength(2);
});

test('adopt() goes on from portion to portion; a portion that is lost is done again', async ({ engine }) => {
  await makeOldNotes(engine);
  await insertOld(engine, ...Array.from({ length: 25 }, (_, place) => (place % 2 ? 'pending' : 'enriched')));
  const adopted = () => engine.value<number>('select count(*)::int from public.note where status_code is not null');
  await adopt(engine, ', p_portion => 10');
  expect(await adopted()).toBe(10);
  await engine.sql.query('begin');
  await adopt(engine, ', p_portion => 10');
  await engine.sql.query('rollback');
  expect(await adopted()).toBe(10);
  await adopt(engine, ', p_portion => 10');
  expect(await adopted()).toBe(20);
  await adoptAll(engine, ', p_portion => 10');
  expect(await adopted()).toBe(25);
  expect(await adopt(engine)).toEqual([]);
  expect(await engine.value('select count(*)::int from public.note_history')).toBe(25);
});

test('a row that somebody holds waits for nobody, and is adopted when it is free', async ({ engine }) => {
  await makeOldNotes(engine);
  const [, held, free] = await insertOld(engine, 'pending', 'pending', 'pending');
  const user = await openTransaction(engine);
  await user.query(`update public.note set label = 'mine' where id = $1`, [held]);
  await adopt(engine);
  expect(await note(engine, free)).toMatchObject({ code: 200 });
  expect(await adopt(engine)).toMatchObject([{ rows: '1', problem: 'somebody holds them: call again' }]);
  await user.query('commit');
  await adoptAll(engine);
  expect(await note(engine, held)).toMatchObject({ code: 200 });
});

test('two who adopt at once adopt different rows, and none is adopted twice', async ({ engine }) => {
  await makeOldNotes(engine);
  await insertOld(engine, ...Array.from({ length: 20 }, () => 'enriched'));
  const one = await openTransaction(engine);
  const two = await openTransaction(engine);
  const statement = `select * from millrace.adopt('notes', 'status', 'public.code_of', p_dry_run => false, p_portion => 12)`;
  expect((await one.query(statement)).rows).toMatchObject([{ rows: '12' }]);
  expect((await two.query(statement)).rows).toMatchObject([{ rows: '8' }]);
  await one.query('commit');
  await two.query('commit');
  expect(await engine.value('select count(*)::int from public.note_history')).toBe(20);
});

test('an adopted row at a gate begins by portions, behind what it brings along, or when a person writes it', async ({
  engine,
}) => {
  await makeOldNotes(engine);
  const [first, second, third] = await insertOld(engine, 'pending', 'pending', 'processing');
  await engine.sql.query(`update public.note set title = 'there' where id = $1`, [second]);
  await adoptAll(engine);
  expect(await engine.value(`select millrace.begin('notes', '200', 2)`)).toBe('2');
  expect(await valuesOf(engine, first as string)).toEqual([200, 210]);
  expect(await valuesOf(engine, second as string)).toEqual([200, 220]);
  expect(await valuesOf(engine, third as string)).toEqual([200]);
  await engine.sql.query('update public.note set status_code = 210 where id = $1', [third]);
  expect(await historyOf(engine, third as string)).toEqual(['>200 user:postgres', '200>210 user:postgres']);
  expect(await engine.value(`select millrace.begin('notes', '200', 10)`)).toBe('0');
  expect((await finish(engine, 'tag', 1, 'notes')).needs).toEqual({ summarize: null });
  expect(await valuesOf(engine, second as string)).toEqual([200, 220, 221, 222, 240, 300]);
});

test('an adopted row may be moved on by hand from where it rests', async ({ engine }) => {
  await makeOldNotes(engine);
  const [failed] = await insertOld(engine, 'failed');
  await adoptAll(engine);
  await engine.sql.query('update public.note set status_code = 120 where id = $1', [failed]);
  expect(await valuesOf(engine, failed as string)).toEqual([500, 120]);
});

test('so may a row whose runs have been pruned', async ({ engine }) => {
  await makeOldNotes(engine);
  const [id] = await insertOld(engine, 'failed');
  await adoptAll(engine);
  await engine.sql.query('update public.note set status_code = 210 where id = $1', [id]);
  await engine.sql.query(`select millrace.cancel(id) from millrace.runs where status = 'running'`);
  expect(await note(engine, id)).toMatchObject({ code: 500 });
  await engine.advance('400 days');
  await engine.sql.query('select millrace.prune()');
  expect(await engine.value('select count(*)::int from millrace.runs')).toBe(0);
  await engine.sql.query('update public.note set status_code = 210 where id = $1', [id]);
  expect(await note(engine, id)).toMatchObject({ code: 210 });
});

test('a row that old code writes while the adoption goes on is adopted by a later call', async ({ engine }) => {
  await makeOldNotes(engine);
  const [, later] = await insertOld(engine, 'enriched', 'enriched');
  await adopt(engine, ', p_portion => 1');
  await engine.sql.query(`update public.note set status = 'pending' where id = $1`, [later]);
  await adoptAll(engine);
  const [fresh] = await insertOld(engine, 'failed');
  expect(await adoptAll(engine)).toMatchObject([{ old_value: 'failed', adopted_as: '500' }]);
  expect(await note(engine, later)).toEqual({ code: 200, status: 'pending' });
  expect(await note(engine, fresh)).toEqual({ code: 500, status: 'failed' });
});

test('once the old column is dropped the new one goes on alone, with runs under way', async ({ engine }) => {
  await makeOldNotes(engine);
  const [id] = await insertOld(engine, 'pending');
  await adoptAll(engine);
  await engine.sql.query(`select millrace.begin('notes', '200', 1)`);
  await engine.sql.query(
    `drop function public.code_of; alter table public.note drop column status cascade; select millrace.attach('notes')`,
  );
  await finish(engine, 'summarize', 1, 'notes');
  expect(await valuesOf(engine, id as string)).toEqual([200, 210, 211, 212, 220]);
});

projectTest.for([
  [`'notes', 'statu', 'public.code_of'`, /p_old_column is statu, but must be another column of public\.note/],
  [
    `'notes', 'status_code', 'public.code_of'`,
    /p_old_column is status_code, but must be another column of public\.note/,
  ],
  [
    `'notes', 'status', 'public.code'`,
    /p_value_function is public\.code, which is no function of a row of public\.note/,
  ],
  [`'notes', 'status', 'public.code_of', false, p_portion => -1`, /p_portion is -1, but must be from 1 to 100000/],
  [`'notes', 'status', 'public.code_of', false, p_portion => null`, /p_portion is null, but must be from 1 to 100000/],
  [`'orders', 'status', 'public.code_of'`, /^there is no pipeline orders$/],
  [`'leads', 'status', 'public.code_of'`, /pipeline leads has the projection columns, not status/],
] as const)('adopt(%s) is refused', async ([call, message], { engine }) => {
  await makeOldNotes(engine);
  expect((await engine.refusal(`select * from millrace.adopt(${call})`)).message).toMatch(message);
});

test('begin is refused at a value where nothing waits to begin', async ({ engine }) => {
  await makeOldNotes(engine);
  expect(await engine.refusal(`select millrace.begin('notes', '210', 1)`)).toMatchObject({
    message: 'p_value is 210, at which no layer of pipeline notes is entered',
    hint: 'Rows wait at: 100, 200.',
  });
});

test.for(['-1', '0', 'null', '100001'])('begin is refused for %s rows', async (limit, { engine }) => {
  await makeOldNotes(engine);
  expect(await engine.refusal(`select millrace.begin('notes', '200', ${limit})`)).toMatchObject({
    code: 'MR002',
    message: `p_limit is ${limit}, but must be from 1 to 100000`,
  });
});
