// Rows belong to users, who hold them in open transactions, delete them and put triggers on them: neither the recovery nor
// the collection of children waits for that or dies of it, and no statement of a user dies of the engine's.
import type pg from 'pg';
import { expect } from 'vitest';
import {
  childStatuses,
  collectChildren,
  defineFamily,
  endFiles,
  failFiles,
  folderRun,
  folderStatuses,
  leftFolder,
  numbers,
  runFiles,
  Spawner,
  spawnAll,
  startFolders,
  sweep,
  waitingFolder,
} from '../../support/engine/children.ts';
import { chain, type Engine, each, test } from '../../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { completed, Worker } from '../../support/worker.ts';

/** A user's trigger that refuses updates of a table where a condition on `new` holds. */
async function refuse(engine: Engine, table: string, condition: string): Promise<void> {
  await engine.sql.query(`
    create function public.refuse() returns trigger language plpgsql as $$
    begin if ${condition} then raise exception 'this row is archived'; end if; return new; end $$;
    create trigger refuse before update on ${table} for each row execute function public.refuse()`);
}

/** Keeps whoever inserts into a table waiting until the answered session ends its transaction. */
async function holdInserts(engine: Engine, table: string): Promise<pg.Client> {
  await engine.sql.query(`
    create table public.brake (id int primary key);
    insert into public.brake values (1);
    create function public.wait_for_brake() returns trigger language plpgsql security definer as $$
    begin perform from public.brake for update; return null; end $$;
    create trigger wait_for_brake before insert on ${table} for each statement execute function public.wait_for_brake()`);
  const brake = await openTransaction(engine);
  await brake.query('select from public.brake for update');
  return brake;
}

const logged = (engine: Engine, code: string) =>
  engine.value<number>('select count(*)::int from millrace.log where code = $1', [code]);

test('one child whose row refuses to be shown as cancelled is reported, and all else recovers', async ({ engine }) => {
  const { folder, fanOut } = await waitingFolder(engine, 3);
  await refuse(engine, 'public.items', `new.scan_error = 'cancelled' and new.number = '2'`);
  await engine.pipeline(chain(['other']), { table: 'public.others' }, 'others');
  await engine.sql.query(`insert into public.others (label) values ('x')`);
  await engine.sql.query(`select millrace.start('others', '1')`);
  await (await Worker.of(engine, 'other', 'others')).takeOne();
  await engine.sql.query('select millrace.cancel($1)', [(await folderRun(engine, folder)).id]);
  await engine.advance('1 hour');
  expect(await sweep(engine)).toMatchObject({ leases: 1 });
  expect(await childStatuses(engine, fanOut)).toEqual({ cancelled: 3 });
  expect(await engine.rows('select number, scan_error from public.items order by number')).toEqual([
    { number: '1', scan_error: 'cancelled' },
    { number: '2', scan_error: null },
    { number: '3', scan_error: 'cancelled' },
  ]);
  expect(await logged(engine, 'projection_failed')).toBe(1);
  // The row goes on showing what nobody does: the invariants name it until somebody corrects it.
  expect(await engine.rows('select rule from millrace.check_invariants()')).toEqual([
    { rule: 'a row that shows queued or started has a live run' },
  ]);
  await engine.sql.query(`update public.items set scan_status = 'pending' where number = '2'`);
});

test('a parent whose row refuses a stage that awaited a threshold keeps no collection from going on', async ({
  engine,
}) => {
  await defineFamily(engine, {
    split: { max_workers: 9 },
    beside: [
      { name: 'early', after: [{ map: 'split', stage: 'scan', count: 1 }] },
      { name: 'publish', needs: ['split'] },
    ],
  });
  const folders = await startFolders(engine, 3);
  const fanOuts = await each(folders, () => spawnAll(engine, numbers(1, 2)));
  await refuse(engine, 'public.folders', `new.id = ${folders[0]} and new.early_status = 'queued'`);
  await runFiles(engine, 'scan');
  expect(await collectChildren(engine, fanOuts)).toMatchObject({ busy: [] });
  expect(await logged(engine, 'threshold_failed')).toBe(1);
  for (const folder of folders.slice(1))
    expect(await folderStatuses(engine, folder)).toMatchObject({ early: 'queued' });
  await runFiles(engine, 'blend');
  await collectChildren(engine, fanOuts);
  for (const folder of folders)
    expect(await folderStatuses(engine, folder)).toMatchObject({ split: 'completed', publish: 'queued' });
  // The engine's word counts: the stage has begun, though its row does not show it.
  expect(await (await Worker.of(engine, 'early', 'folder')).take()).toHaveLength(3);
});

test('a user who deletes a parent waits for the chunk whose rows refer to it, and neither dies', async ({ engine }) => {
  await defineFamily(engine);
  await engine.sql.query(`
    alter table public.items add column book bigint references public.folders on delete cascade;
    create function public.set_book() returns trigger language plpgsql as $$
    begin new.book := new.folder::bigint; return new; end $$;
    create trigger set_book before insert on public.items for each row execute function public.set_book()`);
  const [folder] = await startFolders(engine);
  const spawner = await Spawner.of(engine);
  await spawner.spawn(numbers(1, 2));
  const brake = await holdInserts(engine, 'public.items');
  const spawning = begin(spawner.spawn(numbers(3, 4)));
  await untilBlocked(engine, spawner.worker.client);
  const user = await engine.database.connect();
  const deleting = begin(user.query('delete from public.folders where id = $1', [folder]));
  await untilBlocked(engine, user);
  await brake.query('commit');
  expect((await spawning).status).toBe('spawned');
  expect((await deleting).rowCount).toBe(1);
  expect(await engine.value('select count(*)::int from public.items')).toBe(0);
});

test('without a projection too, an apply function’s rows that refer to the entity cost its deleter nothing', async ({
  engine,
}) => {
  const definition = await engine.pipeline([{ name: 'a' }], { projection: 'none' });
  await engine.sql.query(`
    create table public.notes (item bigint references public.items on delete cascade);
    create function public.keep(p jsonb) returns void language sql as
    $$ insert into public.notes (item) select (r ->> 'entity_id')::bigint from jsonb_array_elements(p) r $$`);
  await engine.define({ ...definition, stages: [{ name: 'a', apply: 'public.keep' }] });
  const [id] = await engine.insert();
  await engine.sql.query(`select millrace.start('flow', $1)`, [id]);
  const worker = await Worker.of(engine, 'a');
  const item = await worker.takeOne();
  const brake = await holdInserts(engine, 'public.notes');
  const reporting = begin(worker.report(completed(item)));
  await untilBlocked(engine, worker.client);
  const user = await engine.database.connect();
  const deleting = begin(user.query('delete from public.items where id = $1', [id]));
  await untilBlocked(engine, user);
  await brake.query('commit');
  expect(await reporting).toEqual(['accepted']);
  expect((await deleting).rowCount).toBe(1);
});

test.for([
  ['deletes', 'finished', 'delete from public.folders where id = $1'],
  [
    'retries',
    'failed',
    `select millrace.retry(r.id) from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id where p.name = 'folder' and r.entity_id = $1`,
  ],
] as const)(
  'neither sweep nor collector waits for a user who %s a parent that has %s',
  async ([, end, statement], { engine }) => {
    const { folder, fanOut } = await (end === 'finished' ? leftFolder : waitingFolder)(engine, 3);
    await (end === 'finished' ? endFiles(engine, [1]) : failFiles(engine, [1]));
    await collectChildren(engine);
    const user = await openTransaction(engine);
    await user.query(statement, [folder]);
    await endFiles(engine, [2]);
    // A session that waits would be ended by its lock timeout, and its call fail.
    const cron = await engine.database.connect();
    await cron.query(`set lock_timeout = '2s'`);
    await cron.query('select millrace.sweep()');
    const worker = await engine.database.connect('service_role');
    await worker.query(`set lock_timeout = '2s'`);
    expect(await collectChildren(engine, [fanOut], worker)).toMatchObject({ busy: [fanOut] });
    expect(await logged(engine, 'sweep_failed')).toBe(0);
    expect(await logged(engine, 'collect_failed')).toBe(0);
    await user.query('rollback');
    // The first cancels what a failed parent has left under way, the second adds that up.
    await sweep(engine);
    await sweep(engine);
    expect(await engine.value('select count(*)::int from millrace.child_tallies where fan_out_id = $1', [fanOut])).toBe(
      0,
    );
  },
);
