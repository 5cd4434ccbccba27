// A bulk and the death of Postgres: what was committed stands, what was under way is as if it had never begun.

import fs from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { createDataDirectory } from '../../local/platform/database/template.ts';
import { type Postgres, startPostgres } from '../../local/platform/postgres.ts';
import { scratchFolder } from '../../local/platform/scratch-folder.ts';
import { startWatchdog } from '../../local/platform/watchdog.ts';
import { compiled } from '../support/definitions.ts';
import { until } from '../support/until.ts';

const migrations = path.join(import.meta.dirname, '..', '..', 'supabase', 'migrations');

/** A server of its own with the project's migrations, which goes with the test. */
async function ownPostgres(): Promise<Postgres> {
  const folder = fs.mkdtempSync(path.join(scratchFolder(), 'millrace-bulk-'));
  fs.chmodSync(folder, 0o711);
  const watchdog = startWatchdog();
  watchdog.removeLater(folder);
  const dataDir = path.join(folder, 'postgres');
  await createDataDirectory(dataDir, folder, { folder: migrations });
  const postgres = await startPostgres({ dataDir, fsync: false, watchdog });
  onTestFinished(async () => {
    await postgres.kill9();
    fs.rmSync(folder, { recursive: true, force: true });
    watchdog.dismiss();
  });
  return postgres;
}

async function connect(postgres: Postgres): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: postgres.url('postgres') });
  client.on('error', () => {});
  await client.connect();
  return client;
}

const definition = compiled({
  pipeline: 'flow',
  entity: { table: 'public.items', key: 'id', projection: 'none' },
  stages: [{ name: 'one', retry: { max_attempts: 1 } }],
});
const setUp = `
  create table public.items (id bigint generated always as identity primary key, label text);
  select millrace.define('${definition}');
  insert into public.items (label) select 'item ' || n from generate_series(1, 1200) n;
  select millrace.start('flow', array(select id::text from public.items));
  select millrace.fail_stage(id, 'one', 'gone', true) from millrace.runs order by id;
  -- A session that begins a stage anew waits for a session that holds this lock.
  create function public.hold_up() returns trigger language plpgsql as
    $$ begin perform pg_advisory_xact_lock_shared(4711); return null; end $$;
  create trigger hold_up after insert on millrace.attempts for each statement execute function public.hold_up()`;

test('a bulk goes on after Postgres was killed in a slice and between two, and takes no run twice', async () => {
  const postgres = await ownPostgres();
  let owner = await connect(postgres);
  await owner.query(setUp);
  const act = async (request: object) => {
    const { rows } = await owner.query('select public.millrace_act($1) as answer', [JSON.stringify(request)]);
    return rows[0].answer;
  };
  const filter = { pipeline: 'flow' };
  const { bulk } = await act({ verb: 'preview', do: { verb: 'retry' }, filter });
  await act({ verb: 'begin', bulk });
  const killed = async () => {
    await postgres.kill9();
    await postgres.start();
    owner = await connect(postgres);
    return (await owner.query('select state, done, slices from millrace.bulks where id = $1', [bulk])).rows[0];
  };
  const killedInSlice = async () => {
    const [keeper, looking] = [await connect(postgres), await connect(postgres)];
    await keeper.query('select pg_advisory_lock(4711)');
    const lost = act({ verb: 'continue', bulk }).catch((error) => error);
    await until(
      async () =>
        (await looking.query(`select from pg_locks where locktype = 'advisory' and not granted`)).rowCount === 1,
    );
    const answer = await killed();
    expect(await lost).toBeInstanceOf(Error);
    return answer;
  };
  expect(await killedInSlice()).toMatchObject({ state: 'running', done: 0, slices: 0 });
  expect(await act({ verb: 'continue', bulk })).toMatchObject({ done: 500 });
  expect(await killed()).toMatchObject({ state: 'running', done: 500 });
  expect(await killedInSlice()).toMatchObject({ state: 'running', done: 500 });
  // The first ends with a full portion of pulses.
  for (let sweeps = 0; sweeps < 2; sweeps += 1) await owner.query('select millrace.sweep()');
  expect(await act({ verb: 'continue', bulk })).toMatchObject({ state: 'done', done: 1200, faults: 0 });
  const { rows } = await owner.query(
    'select number, count(*)::int as runs from millrace.attempts group by 1 order by 1',
  );
  expect(rows).toEqual([
    { number: 1, runs: 1200 },
    { number: 2, runs: 1200 },
  ]);
  const lines = await owner.query(
    `select sum(runs)::int as runs from millrace.journal where bulk_id = $1 and verb = 'retry'`,
    [bulk],
  );
  expect(lines.rows).toEqual([{ runs: 1200 }]);
  expect((await owner.query('select * from millrace.check_invariants()')).rows).toEqual([]);
});
