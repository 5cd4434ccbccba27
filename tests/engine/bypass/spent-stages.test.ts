// A stage that is to be left out while its budget is spent: the sweep begins and ends that by itself.
import { expect } from 'vitest';
import { test } from '../../support/engine/shared-limits.ts';
import type { Engine, Row } from '../../support/engine.ts';
import { runStage } from '../../support/worker.ts';

const sweep = (engine: Engine) => engine.value<Row>('select millrace.sweep()');

/** one → two, of which two is bypassed while its budget is spent; what is spent the test says. */
async function budgeted(engine: Engine, whenSpent = 'bypass') {
  await engine.sql.query(`
    create table public.spent (stage text primary key);
    create or replace function millrace.is_spent(p_stage millrace.stages) returns boolean language sql as
      $$ select exists (select from public.spent s where s.stage = p_stage.name) $$`);
  await engine.sql.query(`select millrace.define_limit('account', '{"spending": {"usd": 5, "per_seconds": 60}}')`);
  const limits = { shared: ['account'] };
  const two = { name: 'two', needs: ['one'], limits, ...(whenSpent && { when_spent: whenSpent }) };
  return engine.pipeline([{ name: 'one' }, two]);
}
const spend = (engine: Engine) => engine.sql.query(`insert into public.spent values ('two')`);
const renew = (engine: Engine) => engine.sql.query('delete from public.spent');

async function throughOne(engine: Engine): Promise<string> {
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  await sweep(engine);
  return id as string;
}

test('while the budget is spent what comes to the stage is left out and remembered', async ({ engine }) => {
  await budgeted(engine);
  const before = await throughOne(engine);
  expect(await engine.statuses(before)).toEqual({ one: 'completed', two: 'queued' });
  await spend(engine);
  const after = await throughOne(engine);
  for (const id of [before, after]) expect(await engine.statuses(id)).toEqual({ one: 'completed', two: 'skipped' });
  expect(await engine.rows('select reason from millrace.bypassed')).toEqual(
    Array(2).fill({ reason: 'its budget is spent' }),
  );
  expect(await engine.rows('select * from millrace.bypasses')).toEqual([]);
});

test('in the next window new rows are worked again, and the remembered wait for take_up', async ({ engine }) => {
  await budgeted(engine);
  await spend(engine);
  const left = await throughOne(engine);
  expect(await engine.refusal(`select millrace.take_up('flow', 'two')`)).toMatchObject({ code: 'MR004' });
  await renew(engine);
  const worked = await throughOne(engine);
  expect((await runStage(engine, 'two')).map((item) => item.entity_id)).toEqual([worked]);
  expect(await engine.value(`select millrace.take_up('flow', 'two')`)).toBe(1);
  expect((await runStage(engine, 'two')).map((item) => item.entity_id)).toEqual([left]);
});

test('before the sweep has seen the next window, nothing spent is taken up', async ({ engine }) => {
  await budgeted(engine);
  await throughOne(engine);
  await engine.sql.query(`select millrace.bypass('flow', 'two', 'a try')`);
  await engine.sql.query(`select millrace.end_bypass('flow', 'two')`);
  await spend(engine);
  expect(await engine.refusal(`select millrace.take_up('flow', 'two')`)).toMatchObject({
    code: 'MR004',
    message: 'stage two is bypassed or its budget spent: all would be left out again',
  });
});

test('a stage that does not say so waits for the next window', async ({ engine }) => {
  await budgeted(engine, '');
  await spend(engine);
  const id = await throughOne(engine);
  expect(await engine.statuses(id)).toEqual({ one: 'completed', two: 'queued' });
});

test('a person cannot end that, but a definition can', async ({ engine }) => {
  const definition = await budgeted(engine);
  await spend(engine);
  await throughOne(engine);
  expect(await engine.refusal(`select millrace.end_bypass('flow', 'two')`)).toMatchObject({
    code: 'MR004',
    message: 'stage two is not bypassed',
  });
  await engine.define({ ...definition, stages: [{ name: 'one' }, { name: 'two', needs: ['one'] }] });
  const worked = await throughOne(engine);
  expect((await runStage(engine, 'two')).map((item) => item.entity_id)).toEqual([worked]);
});

test('a person’s bypass counts over that of the budget, and gives way to it when it ends', async ({ engine }) => {
  await budgeted(engine);
  await spend(engine);
  await throughOne(engine);
  await engine.value(`select millrace.bypass('flow', 'two', 'the model is down')`);
  await throughOne(engine);
  await engine.sql.query(`select millrace.end_bypass('flow', 'two')`);
  await throughOne(engine);
  expect(await engine.rows('select reason from millrace.bypassed order by run_id')).toEqual([
    { reason: 'its budget is spent' },
    { reason: 'the model is down' },
    { reason: 'its budget is spent' },
  ]);
});

test('a word that when_spent does not know is refused', async ({ engine }) => {
  await engine.pipeline([{ name: 'one' }]);
  const refusal = await engine.refusedDefinition({
    pipeline: 'flow',
    entity: { table: 'public.items', key: 'id', projection: 'none' },
    stages: [{ name: 'one', when_spent: 'skip' }],
  });
  expect(refusal).toMatchObject({
    code: 'MR001',
    message: expect.stringContaining('stage one: when_spent is "skip", but must be wait or bypass'),
  });
});

test('a stage without a budget that is to be left out once it is spent is refused', async ({ engine }) => {
  await engine.pipeline([{ name: 'one' }]);
  const refusalOf = (limits?: object) =>
    engine.refusedDefinition({
      pipeline: 'flow',
      entity: { table: 'public.items', key: 'id', projection: 'none' },
      stages: [{ name: 'one', when_spent: 'bypass', limits }],
    });
  const message =
    'stage one: when_spent is "bypass", but must be wait where limits.shared names no limit with spending';
  expect((await refusalOf()).message).toMatch(/when_spent is bypass, but limits.shared names no limit with a budget/);
  await engine.sql.query(`select millrace.define_limit('site', '{"max_in_flight": 2}')`);
  await engine.sql.query(`select millrace.define_limit('account', '{"spending": {"usd": 5, "per_seconds": 60}}')`);
  expect(await refusalOf({ shared: ['site'] })).toMatchObject({
    code: 'MR001',
    message,
    hint: 'Name one in limits.shared (see millrace.limits), or leave when_spent out.',
  });
  await engine.pipeline([{ name: 'one', when_spent: 'bypass', limits: { shared: ['site', 'account'] } }]);
  expect(await engine.value(`select when_spent from millrace.stages where name = 'one'`)).toBe('bypass');
});
