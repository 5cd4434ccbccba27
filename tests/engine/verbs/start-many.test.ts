// Many rows started by one call: all of them as one by itself would be, or none.
import { expect } from 'vitest';
import { journal } from '../../support/engine/operators.ts';
import { chain, type Engine, type Row, test } from '../../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { runStage } from '../../support/worker.ts';

const startAll = (engine: Engine, keys: unknown[], more = '') =>
  engine.value<Row>(`select millrace.start('flow', $1::text[]${more})`, [keys]);

test.for(['columns', 'none'])(
  'a pipeline with projection %s starts as it does by single calls',
  async (projection, { engine }) => {
    await engine.configureWakeUps();
    const stages = [{ name: 'one' }, { name: 'beside' }, { name: 'two', needs: ['one', 'beside'] }];
    await engine.pipeline(stages, { projection });
    const [single, ...many] = await engine.insert(6);
    await engine.sql.query(`select millrace.start('flow', $1)`, [single]);
    const woken = (await engine.wakes()).length;
    await engine.advance('1 minute');
    expect(await startAll(engine, many)).toEqual({ started: 5, under_way: 0 });
    for (const id of many) expect(await engine.attempts(id)).toEqual(await engine.attempts(single));
    if (projection === 'columns')
      for (const id of many) expect(await engine.statuses(id)).toEqual(await engine.statuses(single));
    expect((await engine.wakes()).length).toBe(woken * 2);
    expect(await journal(engine)).toMatchObject([{ verb: 'start', runs: 5, outcome: { started: 5, under_way: 0 } }]);
    expect(await runStage(engine, 'one')).toHaveLength(6);
  },
);

test('a run under way is left as it is, and starts over with p_restart', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  const ids = await engine.insert(4);
  await engine.queue('one', ids.slice(0, 2));
  await runStage(engine, 'one');
  expect(await startAll(engine, ids)).toEqual({ started: 2, under_way: 2 });
  expect(await engine.attempts(ids[0])).toEqual(['one 1 completed', 'two 1 queued']);
  expect(await startAll(engine, ids, ', p_restart => true')).toEqual({ started: 4, under_way: 0 });
  expect(await engine.attempts(ids[0])).toEqual([
    'one 1 completed superseded',
    'two 1 cancelled superseded',
    'one 2 queued',
  ]);
});

test('a stage that is named begins in all of them, with the results that they have', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']), { projection: 'none' });
  const ids = await engine.insert(3);
  await startAll(engine, ids);
  await runStage(engine, 'one');
  await runStage(engine, 'two');
  expect(await startAll(engine, ids, ', p_stage => $$two$$')).toEqual({ started: 3, under_way: 0 });
  expect(await engine.attempts(ids[0])).toContain('two 1 queued');
  const [other] = await engine.insert();
  expect(await engine.refusal(`select millrace.start('flow', $1::text[], 'two')`, [[ids[1], other]])).toMatchObject({
    code: 'MR005',
  });
});

test('a key may be spelled as the type reads it, and comes once however often it is named', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const ids = await engine.insert(2);
  expect(await startAll(engine, ['0001', '1', ' 1', ids[1]])).toEqual({ started: 2, under_way: 0 });
  expect(await engine.rows('select entity_id from millrace.runs order by id')).toEqual([
    { entity_id: '1' },
    { entity_id: '2' },
  ]);
  expect(await startAll(engine, [])).toEqual({ started: 0, under_way: 0 });
});

test('where a key is missing or none, nothing is started, and the keys are named', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const ids = await engine.insert(2);
  const refused = (keys: unknown[] | null, rest = '') =>
    engine.refusal(`select millrace.start('flow', $1::text[]${rest})`, [keys]);
  expect(await refused([...ids, '91', '92'])).toMatchObject({
    code: 'MR003',
    message: 'table public.items has no row with id 91, 92',
  });
  expect(await refused([...ids, 'x'])).toMatchObject({
    code: 'MR002',
    message: expect.stringContaining('a key of table public.items cannot be read as one'),
  });
  expect(await refused([...ids, null])).toMatchObject({
    code: 'MR002',
    message: 'a key of table public.items is null',
  });
  expect(await refused(null)).toMatchObject({ code: 'MR002' });
  expect(await refused([ids, ids])).toMatchObject({
    code: 'MR002',
    message: 'p_entity_ids is a list of lists, but must be one list of keys',
    hint: 'Give values of the column id, such as array(select id::text from …).',
  });
  expect(await refused(ids, ', p_stage => $$none$$')).toMatchObject({ code: 'MR003' });
  expect(await engine.refusal(`select millrace.start('none', array['1'])`)).toMatchObject({ code: 'MR003' });
  expect(await engine.rows('select from millrace.runs')).toEqual([]);
  expect(await journal(engine)).toEqual([]);
});

test('start() waits for a locked row, and starts each row once beside another call', async ({ engine }) => {
  await engine.pipeline(chain(['one']), { projection: 'none' });
  const ids = await engine.insert(3);
  const other = await openTransaction(engine);
  await other.query(`select millrace.start('flow', $1::text[])`, [ids.slice(1)]);
  const session = await engine.database.connect();
  const late = begin(session.query(`select millrace.start('flow', $1::text[]) as answer`, [ids]));
  await untilBlocked(engine, session);
  await other.query('commit');
  expect((await late).rows).toEqual([{ answer: { started: 1, under_way: 2 } }]);
});
