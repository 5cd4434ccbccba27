// The values that people write into a status column: they are judged by the rows of status_moves, and undone where they are refused.
import { expect } from 'vitest';
import { historyOf, makeLinks, makeNotes, valuesOf } from '../../support/engine/status.ts';
import { type Engine, type Row, test } from '../../support/engine.ts';
import { completed, failed, finish, runStage, Worker } from '../../support/worker.ts';

async function insert(engine: Engine, code: number | null = 110, label = 'a'): Promise<string> {
  return engine.value<string>('insert into public.note (label, status_code) values ($1, $2) returning id', [
    label,
    code,
  ]);
}

const code = (engine: Engine, id: string) =>
  engine.value<number>('select status_code from public.note where id = $1', [id]);
const write = (engine: Engine, id: string, value: unknown) =>
  engine.sql.query('update public.note set status_code = $2 where id = $1', [id, value]);
const refusal = (engine: Engine, id: string, value: unknown) =>
  engine.refusal('update public.note set status_code = $2 where id = $1', [id, value]);

test('the gate of a layer begins its first stage, and the value that stands changes nothing', async ({ engine }) => {
  await makeNotes(engine);
  const id = await insert(engine, 100);
  await write(engine, id, 110);
  expect(await engine.attempts(id)).toEqual(['fetch 1 queued']);
  expect(await historyOf(engine, id)).toEqual(['>100 user:postgres', '100>110 system:auto']);
});

test('a ready value of an earlier stage starts over from there; one of a later stage is refused with the remedy', async ({
  engine,
}) => {
  await makeNotes(engine);
  const id = await insert(engine);
  await runStage(engine, 'fetch', 'notes');
  const worker = await Worker.of(engine, 'score', 'notes');
  const item = await worker.takeOne();
  expect(await refusal(engine, id, 210)).toMatchObject({
    code: 'MR005',
    message: `status_code of 1 row (${id}) cannot go from 121 to 210`,
    hint:
      `Stage score has no result yet, which summarize needs; to go on without it: select millrace.skip(run, 'score'). ` +
      'From 121 people may write: 110, 120.',
  });
  await write(engine, id, 110);
  expect(await worker.report(completed(item))).toEqual(['stale']);
  expect(await engine.attempts(id)).toEqual([
    'fetch 1 completed superseded',
    'score 1 cancelled superseded',
    'fetch 2 queued',
  ]);
  expect((await valuesOf(engine, id)).slice(-2)).toEqual([121, 110]);
});

test("work in progress is the engine's, null and unknown values are none, and a refusal undoes the whole statement", async ({
  engine,
}) => {
  await makeNotes(engine);
  const ids = [await insert(engine), await insert(engine)];
  const all = async (value: unknown) =>
    engine.refusal('update public.note set label = $2, status_code = $1 where true', [value, 'x']);
  expect(await all(111)).toMatchObject({
    code: 'MR005',
    message: `status_code of 2 rows (${ids[0]}, …) cannot go from 110 to 111`,
    hint: 'The engine writes 111 by itself, as stage fetch goes on. At 110 nobody writes: the engine goes on from there.',
  });
  expect((await all(112)).hint).toMatch(/^The engine writes 112 by itself, as stage fetch goes on\./);
  expect((await all(240)).hint).toMatch(/^The engine writes 240 by itself/);
  expect((await all(500)).hint).toMatch(/^To stop the run: select millrace.cancel\(run\)\./);
  expect(await all(null)).toMatchObject({
    code: 'MR005',
    message: `status_code of 2 rows (${ids[0]}, …) was set to null, but a row cannot leave pipeline notes`,
  });
  expect(await all(999)).toMatchObject({
    code: 'MR005',
    message: `status_code of 2 rows (${ids[0]}, …) was set to 999, which is no value of pipeline notes`,
    hint: expect.stringMatching(/^Known: 100, 110, 111, .*, 510\.$/),
  });
  expect(await engine.rows('select distinct label, status_code from public.note')).toEqual([
    { label: 'a', status_code: 110 },
  ]);
  expect(await engine.value('select count(*)::int from public.note_history')).toBe(2);
});

test('a new row begins at its first stage, or without a value waits to be started; elsewhere it is refused', async ({
  engine,
}) => {
  await makeNotes(engine);
  const later = await engine.refusal('insert into public.note (status_code) values (300)');
  expect(later).toMatchObject({
    code: 'MR005',
    message: expect.stringMatching(
      /^300 cannot be written to 1 row \(\d+\): stage review cannot start .* its need tag has no result$/,
    ),
  });
  for (const value of [111, 310, 400, 500]) {
    expect(await engine.refusal('insert into public.note (status_code) values ($1)', [value])).toMatchObject({
      code: 'MR005',
      message: expect.stringMatching(`cannot go from nothing to ${value}$`),
      hint: expect.stringMatching(/^A new row begins at one of 100, 110/),
    });
  }
  const id = await insert(engine, null);
  expect(await engine.rows('select * from millrace.runs')).toEqual([]);
  await engine.sql.query(`select millrace.start('notes', $1)`, [id]);
  expect(await valuesOf(engine, id)).toEqual([100, 110]);
});

test('no row starts past a stage that its definition has put in front since', async ({ engine }) => {
  const definition = await makeLinks(engine);
  const id = await engine.value(`insert into public.link (label, status) values ('empty', 'new') returning id`);
  await finish(engine, 'classify', 1, 'page_links');
  await engine.sql.query(`select millrace.skip(max(id), 'scrape') from millrace.runs`);
  const values = definition.entity.status.values as Record<string, Row>;
  const more = { lost: ['Its address is unknown'], finding: ['Being looked for'], found: ['Its address is known'] };
  values.work = { ...more, ...values.work };
  const [classify, ...others] = definition.stages;
  const find = { name: 'find', shows: { queued: 'lost', started: 'finding', completed: 'found' } };
  await engine.define({ ...definition, stages: [find, { ...classify, needs: ['find'] }, ...others] });
  expect(await engine.refusal(`select millrace.start('page_links', $1, 'extract')`, [id])).toMatchObject({
    code: 'MR005',
    message: expect.stringMatching(/its need find has no result$/),
    hint: expect.stringMatching(/^Queue find instead/),
  });
  await engine.sql.query(`select millrace.start('page_links', $1)`, [id]);
});

test('a failed row goes on at the stage that failed or an earlier one', async ({ engine }) => {
  await makeNotes(engine);
  const id = await insert(engine);
  await runStage(engine, 'fetch', 'notes');
  const worker = await Worker.of(engine, 'score', 'notes');
  await worker.report(failed(await worker.takeOne(), { permanent: true }));
  expect(await code(engine, id)).toBe(500);
  expect((await refusal(engine, id, 210)).code).toBe('MR005');
  await write(engine, id, 120);
  await runStage(engine, 'score', 'notes');
  expect(await code(engine, id)).toBe(210);
});

test('a bulk update is judged and started in one go', async ({ engine }) => {
  await makeNotes(engine);
  await engine.sql.query(`insert into public.note (label) select 'n' from generate_series(1, 500)`);
  await engine.sql.query('update public.note set status_code = 110');
  expect(await engine.value('select count(*)::int from millrace.attempts')).toBe(500);
  const mixed = await engine.refusal('update public.note set status_code = case when id = 7 then 121 else 110 end');
  expect(mixed.message).toBe('status_code of 1 row (7) cannot go from 110 to 121');
});

test('status_moves lists what may follow, by whom, and what of it a diagram draws', async ({ engine }) => {
  await makeNotes(engine);
  const moves = (of: string) =>
    engine.rows(
      `select to_value, by, means, drawn from millrace.status_moves 
       where pipeline = 'notes' and from_value = $1 and by <> 'call' order by 1, 2`,
      [of],
    );
  expect(await moves('111')).toEqual([
    { to_value: '110', by: 'engine', means: 'work', drawn: false },
    { to_value: '110', by: 'person', means: 'start', drawn: false },
    { to_value: '112', by: 'engine', means: 'work', drawn: true },
    { to_value: '500', by: 'engine', means: 'fail', drawn: false },
    { to_value: '510', by: 'engine', means: 'fail', drawn: false },
  ]);
  expect(await moves('310')).toEqual([
    { to_value: '110', by: 'person', means: 'start', drawn: false },
    { to_value: '120', by: 'person', means: 'start', drawn: false },
    { to_value: '210', by: 'person', means: 'start', drawn: false },
    { to_value: '220', by: 'person', means: 'start', drawn: false },
    { to_value: '300', by: 'person', means: 'interim', drawn: false },
    { to_value: '300', by: 'person', means: 'start', drawn: false },
    { to_value: '320', by: 'person', means: 'interim', drawn: true },
    { to_value: '330', by: 'engine', means: 'work', drawn: false },
    { to_value: '330', by: 'person', means: 'answer', drawn: false },
    { to_value: '340', by: 'engine', means: 'work', drawn: false },
    { to_value: '340', by: 'person', means: 'answer', drawn: false },
    { to_value: '500', by: 'engine', means: 'fail', drawn: false },
  ]);
  expect(await moves('400')).toEqual([]);
});
