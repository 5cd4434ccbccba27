// Taking up what a bypass has left out: in order, bounded, and never what somebody has started since.
import { expect } from 'vitest';
import { journal } from '../../support/engine/operators.ts';
import { planRows } from '../../support/engine/plan-rows.ts';
import { makeLinks } from '../../support/engine/status.ts';
import { chain, type Engine, test } from '../../support/engine.ts';
import { begin, openTransaction } from '../../support/sessions.ts';
import { runStage } from '../../support/worker.ts';

const takeUp = (engine: Engine, stage: string, limit = 1000, pipeline = 'flow') =>
  engine.value<number>('select millrace.take_up($1, $2, $3)', [pipeline, stage, limit]);
const remembered = async (engine: Engine): Promise<string[]> =>
  (await engine.rows<{ entity_id: string }>('select entity_id from millrace.bypassed order by at, run_id')).map(
    (row) => row.entity_id,
  );

/** Rows that have done the stage one, and whose stage two was left out; the bypass is over. */
async function leftOut(engine: Engine, count: number, names = ['one', 'two']): Promise<string[]> {
  await engine.pipeline(chain(names));
  const ids = await engine.queued('one', count);
  await runStage(engine, 'one');
  await engine.sql.query(`select millrace.bypass('flow', 'two', 'no money')`);
  while ((await remembered(engine)).length < count) await engine.sql.query('select millrace.sweep()');
  await engine.sql.query(`select millrace.end_bypass('flow', 'two')`);
  return ids;
}

test('rows start at the stage with the results before it, oldest first, as many as asked for', async ({ engine }) => {
  const ids = await leftOut(engine, 3);
  expect(await takeUp(engine, 'two', 2)).toBe(2);
  expect(await remembered(engine)).toEqual([ids[2]]);
  const batch = await runStage(engine, 'two');
  expect(batch.map((item) => item.entity_id)).toEqual(ids.slice(0, 2));
  expect(batch[0]?.needs).toEqual({ one: { stage: 'one', entity: ids[0] } });
  expect(await engine.statuses(ids[0])).toEqual({ one: 'completed', two: 'completed' });
  expect(await engine.value('select count(*)::int from millrace.runs where entity_id = $1', [ids[0]])).toBe(2);
  expect(await takeUp(engine, 'two')).toBe(1);
  expect(await takeUp(engine, 'two')).toBe(0);
  expect((await journal(engine)).slice(2)).toMatchObject([
    { verb: 'take_up', stage: 'two', runs: 2, outcome: { started: 2 } },
    { verb: 'take_up', outcome: { started: 1 } },
    { verb: 'take_up', outcome: { started: 0 } },
  ]);
});

test('the stages after a taken-up stage are done again with its result', async ({ engine }) => {
  const [id] = await leftOut(engine, 1, ['one', 'two', 'three']);
  const [before] = await runStage(engine, 'three');
  expect(before?.needs).toEqual({ two: null });
  expect(await takeUp(engine, 'two')).toBe(1);
  await runStage(engine, 'two');
  const [after] = await runStage(engine, 'three');
  expect(after?.needs).toEqual({ two: { stage: 'two', entity: id } });
});

test('a row whose run is live stays remembered, and is taken up once the run is over', async ({ engine }) => {
  const [id] = await leftOut(engine, 1, ['one', 'two', 'three']);
  expect(await takeUp(engine, 'two')).toBe(0);
  expect(await remembered(engine)).toEqual([id]);
  await runStage(engine, 'three');
  expect(await takeUp(engine, 'two')).toBe(1);
});

test('rows that are gone, or that somebody has started since, are forgotten and not started', async ({ engine }) => {
  const [gone, started, worked, again] = await leftOut(engine, 4);
  await engine.sql.query('delete from public.items where id = $1', [gone]);
  await engine.queue('two', [worked as string]);
  await runStage(engine, 'two');
  await engine.queue('two', [started as string]);
  expect(await takeUp(engine, 'two')).toBe(1);
  expect(await remembered(engine), 'as long as it is live').toEqual([started]);
  await runStage(engine, 'two');
  expect(await takeUp(engine, 'two')).toBe(0);
  expect(await remembered(engine)).toEqual([]);
  expect(await engine.value('select count(*)::int from millrace.runs where entity_id = $1', [started])).toBe(2);
  expect(await engine.value('select count(*)::int from millrace.runs where entity_id = $1', [again])).toBe(2);
});

test('a deleted row is forgotten with its runs, and so are all rows of an emptied table', async ({ engine }) => {
  const [gone, ...others] = await leftOut(engine, 3);
  await engine.sql.query('delete from public.items where id = $1', [gone]);
  expect(await remembered(engine)).toEqual(others);
  await engine.sql.query('truncate public.items');
  expect(await remembered(engine)).toEqual([]);
});

test('a row started at another stage since is still left out there, and is taken up', async ({ engine }) => {
  await engine.pipeline([{ name: 'one' }, { name: 'two', needs: ['one'] }, { name: 'beside', needs: ['one'] }]);
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  await engine.sql.query(`select millrace.bypass('flow', 'two', 'no money')`);
  await engine.sql.query(`select millrace.end_bypass('flow', 'two')`);
  await runStage(engine, 'beside');
  await engine.queue('beside', [id as string]);
  await runStage(engine, 'beside');
  expect(await engine.statuses(id)).toMatchObject({ two: 'skipped' });
  expect(await takeUp(engine, 'two')).toBe(1);
  expect(await runStage(engine, 'two')).toHaveLength(1);
});

test('a row left out once more is remembered once, by its newest run', async ({ engine }) => {
  const [id] = await leftOut(engine, 1);
  await engine.sql.query(`select millrace.bypass('flow', 'two', 'once more')`);
  await engine.queue('two', [id as string]);
  await engine.sql.query('select millrace.sweep()');
  expect(
    await engine.rows('select run_id = (select max(id) from millrace.runs) as newest, reason from millrace.bypassed'),
  ).toEqual([{ newest: true, reason: 'once more' }]);
});

test('a call ends after some seconds, however many it is to start', async ({ engine }) => {
  await leftOut(engine, 600);
  await engine.sql.query(`
    create function public.dawdle() returns trigger language plpgsql as
      $$ begin perform pg_sleep(0.011); return new; end $$;
    create trigger dawdle before update on public.items for each row execute function public.dawdle()`);
  expect(await takeUp(engine, 'two', 10_000)).toBe(500);
  expect(await remembered(engine)).toHaveLength(100);
});

test('a row that somebody holds is left for the next call, which nobody waits for', async ({ engine }) => {
  const [held, free] = await leftOut(engine, 2);
  const holder = await openTransaction(engine);
  await holder.query('select from public.items where id = $1 for update', [held]);
  expect(await takeUp(engine, 'two')).toBe(1);
  expect(await remembered(engine)).toEqual([held]);
  await holder.query('rollback');
  expect(await engine.statuses(free)).toEqual({ one: 'completed', two: 'queued' });
  expect(await takeUp(engine, 'two')).toBe(1);
});

test('two who take up at once start each row once', async ({ engine }) => {
  await leftOut(engine, 40);
  const others = await Promise.all([1, 2].map(() => engine.database.connect()));
  const counts = await Promise.all(
    others.map((client) => begin(client.query<{ n: number }>(`select millrace.take_up('flow', 'two') as n`))),
  );
  const started = counts.reduce((sum, { rows }) => sum + (rows[0]?.n ?? 0), 0) + (await takeUp(engine, 'two'));
  expect(started).toBe(40);
  expect(await engine.value('select count(*)::int from millrace.runs')).toBe(80);
});

test('a row whose run was pruned begins at the first stage', async ({ engine }) => {
  const [id] = await leftOut(engine, 1);
  await engine.advance('400 days');
  await engine.sql.query('select millrace.prune()');
  expect(await engine.rows('select * from millrace.runs')).toEqual([]);
  expect(await takeUp(engine, 'two')).toBe(1);
  expect(await engine.statuses(id)).toEqual({ one: 'queued', two: 'pending' });
});

test('a row that was worked since is not taken up after that run was pruned', async ({ engine }) => {
  const [id] = await leftOut(engine, 1);
  await engine.queue('two', [id as string]);
  await runStage(engine, 'two');
  await engine.advance('400 days');
  await engine.sql.query('select millrace.prune()');
  expect(await takeUp(engine, 'two')).toBe(0);
  expect(await engine.rows('select * from millrace.runs')).toEqual([]);
});

test('a row that cannot start stays remembered, and the log says why', async ({ engine }) => {
  const ids = await leftOut(engine, 3);
  await engine.sql.query(`
    create function public.refuse() returns trigger language plpgsql as
      $$ begin raise exception 'not this one'; end $$;
    create trigger refuse before update on public.items for each row
      when (new.two_status = 'queued' and new.label = 'item 2') execute function public.refuse()`);
  expect(await takeUp(engine, 'two')).toBe(2);
  expect(await remembered(engine)).toEqual([ids[1]]);
  expect(await engine.value(`select message from millrace.log where code = 'not_taken_up'`)).toContain(
    `Row ${ids[1]} cannot be taken up at stage two`,
  );
});

test('a row of one status column goes on from the word that it kept', async ({ engine }) => {
  await makeLinks(engine);
  await engine.sql.query(`insert into public.link (label, status) values ('a', 'new')`);
  await engine.sql.query(`select millrace.bypass('page_links', 'extract', 'no money')`);
  for (const stage of ['classify', 'scrape']) await runStage(engine, stage, 'page_links');
  await engine.sql.query('select millrace.sweep()');
  await engine.sql.query(`select millrace.end_bypass('page_links', 'extract')`);
  expect(await takeUp(engine, 'extract', 10, 'page_links')).toBe(1);
  expect(await engine.rows('select status from public.link')).toEqual([{ status: 'scraped' }]);
  expect(await runStage(engine, 'extract', 'page_links')).toHaveLength(1);
  expect(await engine.rows('select status from public.link')).toEqual([{ status: 'extracted' }]);
});

test('a row that cannot be taken up is refused with the remedy', async ({ engine }) => {
  await leftOut(engine, 1);
  const refused = (call: string) => engine.refusal(`select millrace.${call}`);
  expect(await refused(`take_up('flow', 'tow')`)).toMatchObject({ code: 'MR003' });
  expect(await refused(`take_up('flow', 'two', 0)`)).toMatchObject({
    code: 'MR002',
    message: 'p_count is 0, but must be from 1 to 10000',
  });
  await engine.sql.query(`select millrace.bypass('flow', 'two', 'again')`);
  expect(await refused(`take_up('flow', 'two')`)).toMatchObject({
    code: 'MR004',
    message: 'stage two is bypassed or its budget spent: all would be left out again',
  });
  await engine.sql.query(`select millrace.end_bypass('flow', 'two')`);
  await engine.pipeline(chain(['one']));
  expect(await refused(`take_up('flow', 'two')`)).toMatchObject({
    code: 'MR004',
    message: `stage two is not part of the pipeline's current version`,
  });
});

test('a call of take_up() reads no more rows after more are remembered or were taken up', async ({ engine }) => {
  await leftOut(engine, 300);
  await engine.sql.query('vacuum analyze millrace.runs, millrace.attempts, millrace.bypassed, public.items');
  const rows = () => planRows(engine.database.superUrl, `select millrace.take_up('flow', 'two', 20)`);
  const few = await rows();
  await engine.queued('one', 1500);
  await runStage(engine, 'one');
  await engine.sql.query(`select millrace.bypass('flow', 'two', 'no money')`);
  for (let round = 0; round < 3; round++) await engine.sql.query('select millrace.sweep()');
  await engine.sql.query(`select millrace.end_bypass('flow', 'two')`);
  expect((await remembered(engine)).length).toBeGreaterThan(900);
  const many = await rows();
  expect(few).toBeGreaterThan(40);
  expect(many).toBeLessThan(few * 1.5);
});
