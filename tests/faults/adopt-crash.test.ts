// Postgres is killed in the middle of a portion of an adoption, on a server of the test's own.
import { expect, test } from 'vitest';
import { makeAdoption, makeNotes } from '../support/engine/status.ts';
import type { Engine } from '../support/engine.ts';
import { killableServer } from '../support/faults/killable-server.ts';

const { engine: engineOf, killedWithin } = killableServer('adopt');

/** Notes of before: half of them wait at a gate once they are adopted, the others ask for a review. */
async function makeOldNotes(engine: Engine, count: number): Promise<void> {
  await makeAdoption(engine);
  await makeNotes(engine);
  await engine.sql.query(`
    alter table public.note add column status text;
    create function public.code_of(n public.note) returns smallint language sql as $$
      select case n.status when 'pending' then 200 when 'enriched' then 300 end $$;
    insert into public.note (status) select case n % 2 when 0 then 'pending' else 'enriched' end from generate_series(1, ${count}) n`);
}

const adopt = `select * from millrace.adopt('notes', 'status', 'public.code_of', p_dry_run => false, p_portion => 10)`;

test('an adoption whose server is killed in a portion goes on, and each row is adopted once', async () => {
  let engine = await engineOf();
  await makeOldNotes(engine, 60);
  const adopted = () => engine.value<number>('select count(*)::int from public.note where status_code is not null');
  // In the first portion, with which the old column begins to follow; where values are written; and where questions are asked.
  for (const [place, table] of ['public.note_history', 'public.note_history', 'public.millrace_decisions'].entries()) {
    engine = await killedWithin(engine, table, adopt);
    expect(await adopted()).toBe(10 * place);
    await engine.expectSound();
    expect(await engine.rows(adopt)).not.toEqual([]);
    expect(await adopted()).toBe(10 * (place + 1));
  }
  for (let portion = 4; portion <= 6; portion++) expect(await engine.rows(adopt)).not.toEqual([]);
  expect(await engine.rows(adopt)).toEqual([]);
  expect(await engine.rows('select status_code, count(*)::int from public.note group by 1 order by 1')).toEqual([
    { status_code: 200, count: 30 },
    { status_code: 300, count: 30 },
  ]);
  const history =
    'select from_status, to_status, count(*)::int, count(distinct note_id)::int as notes from public.note_history';
  expect(await engine.rows(`${history} group by 1, 2 order by 2`)).toEqual([
    { from_status: null, to_status: 200, count: 30, notes: 30 },
    { from_status: null, to_status: 300, count: 30, notes: 30 },
  ]);
  expect(await adopted()).toBe(60);
  expect(await engine.value('select count(*)::int from public.millrace_decisions')).toBe(30);

  engine = await killedWithin(engine, 'millrace.attempts', `select millrace.begin('notes', '200', 20)`);
  expect(await engine.value(`select millrace.begin('notes', '200', 100)`)).toBe('30');
  expect(await engine.value('select count(distinct entity_id)::int from millrace.runs')).toBe(60);
  expect(await engine.value('select count(*)::int from millrace.runs')).toBe(60);
  await engine.expectSound();
});
