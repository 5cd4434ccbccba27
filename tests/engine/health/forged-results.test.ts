// A role that may write a whole table may write the engine's columns too: doctor() says so, with what helps.
import { expect } from 'vitest';
import { makeLinks, makeNotes } from '../../support/engine/status.ts';
import { chain, type Engine, test } from '../../support/engine.ts';
import { completed, Worker } from '../../support/worker.ts';

/** A pipeline over public.items, whose rows users may see and change by a policy. */
async function define(engine: Engine): Promise<string> {
  await engine.pipeline(chain(['one', 'two']));
  await engine.sql.query(`
    alter table public.items enable row level security;
    create policy everybody on public.items to authenticated using (true) with check (true);
    revoke all on public.items from anon, authenticated`);
  const [id] = await engine.queued('one');
  return id as string;
}

const found = async (engine: Engine) =>
  (
    await engine.rows<{ ok: boolean; detail: string }>(
      `select ok, detail from millrace.doctor() where what = 'only the engine can write results'`,
    )
  )[0] as { ok: boolean; detail: string };
/** The statement of the remedy. */
const cure = ({ detail }: { detail: string }) => detail.slice(detail.indexOf('revoke'), detail.indexOf(';'));

test('a grant on the whole table lets an owner forge results: doctor() gives the statements that end it', async ({
  engine,
}) => {
  const id = await define(engine);
  await engine.sql.query(`
    grant all on public.items to authenticated;
    grant update (one_status) on public.items to authenticated`);
  const owner = await engine.database.connect('authenticated');
  const forge = `update public.items set one_result = '{"paid": true}' where id = $1`;
  expect((await owner.query(forge, [id])).rowCount).toBe(1);
  const ill = await found(engine);
  expect(ill).toEqual({
    ok: false,
    detail:
      'authenticated may insert, update what the engine writes in public.items: revoke insert, update on public.items from ' +
      'public, authenticated; and grant it its own columns by name',
  });
  await engine.sql.query(cure(ill));
  await engine.sql.query('grant update (label, one_status) on public.items to authenticated');
  expect(await found(engine)).toEqual({ ok: true, detail: 'no role of the Data API can' });
  expect(await engine.refusal(forge, [id], owner)).toMatchObject({ code: '42501' });
  const insert = `insert into public.items (label, two_result) values ('x', '{}')`;
  expect(await engine.refusal(insert, [], owner)).toMatchObject({ code: '42501' });
  expect((await owner.query(`update public.items set label = 'mine', one_status = 'queued'`)).rowCount).toBe(1);
  // The engine itself goes on as before.
  const worker = await Worker.of(engine, 'one');
  await worker.report(completed(await worker.takeOne()));
  expect(await engine.statuses(id)).toEqual({ one: 'completed', two: 'queued' });
});

test('a right that public was granted is revoked from public', async ({ engine }) => {
  await define(engine);
  await engine.sql.query('grant update on public.items to public');
  const ill = await found(engine);
  expect(cure(ill)).toBe('revoke update on public.items from public, authenticated');
  await engine.sql.query(cure(ill));
  expect(await found(engine)).toMatchObject({ ok: true });
});

test('a role that no policy lets write, or that holds columns of its own alone, is no forger', async ({ engine }) => {
  await define(engine);
  await engine.sql.query(`
    drop policy everybody on public.items;
    create policy readers on public.items for select to authenticated using (true);
    grant all on public.items to anon, authenticated`);
  expect(await found(engine)).toMatchObject({ ok: true });
  await engine.sql.query(`
    revoke all on public.items from anon, authenticated;
    alter table public.items disable row level security;
    grant select, insert (label), update (label, one_status, two_status) on public.items to authenticated`);
  expect(await found(engine)).toMatchObject({ ok: true });
});

test('a role that may write a history or a lookup could forge it: the remedy of doctor() revokes that, and leaves the status column', async ({
  engine,
}) => {
  await makeNotes(engine);
  const tables = ['note', 'note_history', 'note_lookup'];
  for (const table of tables) {
    await engine.sql.query(`
      alter table public.${table} disable row level security;
      revoke all on public.${table} from anon, authenticated, public;
      grant all on public.${table} to authenticated`);
  }
  const [note] = await engine.rows<{ id: string }>('insert into public.note (status_code) values (100) returning id');
  const clerk = await engine.database.connect('authenticated');
  const forge = `update public.note_history set changed_by = 'user:someone else' where note_id = $1`;
  expect((await clerk.query(forge, [note?.id])).rowCount).toBeGreaterThan(0);
  const ill = await found(engine);
  expect(ill).toEqual({
    ok: false,
    detail:
      'authenticated may delete, insert, update what the engine writes in public.note_lookup: revoke delete, insert, update ' +
      'on public.note_lookup from public, authenticated; and grant it its own columns by name. ' +
      'authenticated may delete, insert, update what the engine writes in public.note_history: revoke delete, insert, update ' +
      'on public.note_history from public, authenticated; and grant it its own columns by name',
  });
  for (const [statements] of ill.detail.matchAll(/revoke[^;]*;/g)) await engine.sql.query(statements);
  expect(await found(engine)).toMatchObject({ ok: true });
  expect(await engine.refusal(forge, [note?.id], clerk)).toMatchObject({ code: '42501' });
  // The engine itself goes on as before, and so do people by the status column.
  await clerk.query('insert into public.note (status_code) values (110)');
  expect(
    await engine.rows(`select to_status, changed_by from public.note_history where note_id <> $1`, [note?.id]),
  ).toEqual([{ to_status: 110, changed_by: 'user:authenticated' }]);
});

test('a history that a policy lets nobody write has no forgers', async ({ engine }) => {
  await makeNotes(engine);
  await engine.sql.query(`
    alter table public.note_history enable row level security;
    create policy readers on public.note_history for select to authenticated using (true);
    grant all on public.note_history to anon, authenticated`);
  expect((await found(engine)).detail).not.toContain('note_history');
  await engine.sql.query('create policy removers on public.note_history for delete to authenticated using (true)');
  expect((await found(engine)).detail).toContain('revoke delete on public.note_history from public, authenticated;');
});

test('the figures beside a status column are the engine’s, the column itself is written by people', async ({
  engine,
}) => {
  await makeLinks(engine);
  const ill = await found(engine);
  expect(cure(ill)).toBe('revoke insert, update on public.link from public, authenticated');
  await engine.sql.query(`${cure(ill)}; grant insert (label, status) on public.link to authenticated`);
  expect(await found(engine)).toMatchObject({ ok: true });
  const clerk = await engine.database.connect('authenticated');
  await clerk.query(`insert into public.link (label, status) values ('a', 'new')`);
});

test('nobody can forge the results of the examples', async ({ engine }) => {
  expect(await found(engine)).toMatchObject({ ok: true });
});

test('a role without a right on the schema cannot pass for the engine, whatever its session announces', async ({
  engine,
}) => {
  const id = await define(engine);
  await engine.sql.query('grant select, update on public.items to authenticated');
  const clerk = await engine.database.connect('authenticated');
  const forge = `update public.items set one_status = 'completed', one_result = '{"paid": true}' where id = $1`;
  const refused = await engine.refusal(forge, [id], clerk);
  expect(refused).toMatchObject({ code: 'MR005' });
  for (const depth of ['0', '1', '-1']) {
    await clerk.query(`select set_config('millrace.projecting', $1, false)`, [depth]);
    expect(await engine.refusal(forge, [id], clerk)).toEqual(refused);
  }
  expect(await engine.item(id)).toMatchObject({ one_status: 'queued', one_result: null });
  // Nor does the announcement keep from the engine what is for it.
  const worker = await Worker.of(engine, 'one');
  await worker.complete([completed(await worker.takeOne())]);
  await clerk.query(`select set_config('millrace.projecting', '0', false)`);
  await clerk.query(`update public.items set one_status = 'queued' where id = $1`, [id]);
  expect(await engine.attempts(id)).toEqual([
    'one 1 completed superseded',
    'two 1 cancelled superseded',
    'one 2 queued',
  ]);
});

test('a role that may read all data, the schema included, cannot pass for the engine either', async ({ engine }) => {
  const id = await define(engine);
  const role = `reader_${process.pid}_${Date.now()}`;
  await engine.sql.query(`
    alter table public.items disable row level security;
    create role ${role};
    grant ${role} to postgres;
    grant pg_read_all_data to ${role};
    grant update on public.items to ${role};
    set role ${role};
    set millrace.projecting = '0'`);
  const forge = `update public.items set one_status = 'completed' where id = $1`;
  expect(await engine.refusal(forge, [id])).toMatchObject({ code: 'MR005' });
  await engine.sql.query(`
    reset role;
    reset millrace.projecting;
    revoke all on public.items from ${role};
    drop role ${role}`);
});
