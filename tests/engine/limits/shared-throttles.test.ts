// A shared limit over its definition, for a while and for a reason.
import { expect } from 'vitest';
import { journal, signIn } from '../../support/engine/operators.ts';
import { test } from '../../support/engine/shared-limits.ts';
import { chain, type Engine, type Row } from '../../support/engine.ts';
import { completed, Worker } from '../../support/worker.ts';

const state = async (engine: Engine) => (await engine.rows('select * from millrace.shared_limit_state'))[0] as Row;
const throttle = (engine: Engine, limits: Row, minutes = 60) =>
  engine.sql.query(
    `select millrace.throttle_limit('model', $1, millrace.now() + make_interval(mins => $2), 'captchas')`,
    [JSON.stringify(limits), minutes],
  );

async function limited(engine: Engine, limits: Row): Promise<Worker> {
  await engine.sql.query(`select millrace.define_limit('model', $1)`, [JSON.stringify(limits)]);
  await engine.pipeline(chain(['one'], { limits: { shared: ['model'] } }));
  await engine.queued('one', 20);
  return Worker.of(engine, 'one');
}

test('a throttle holds until its time is over, and then the declared limit holds again', async ({ engine }) => {
  await engine.configureWakeUps();
  const worker = await limited(engine, { max_in_flight: 5 });
  await throttle(engine, { max_in_flight: 2, rate: { count: 3, per_seconds: 3600 } }, 5);
  const batch = await worker.take(10);
  expect(batch).toHaveLength(2);
  await worker.complete(batch.map((item) => completed(item)));
  expect(await worker.take(10)).toHaveLength(1);
  expect(await state(engine)).toMatchObject({
    declared: { max_in_flight: 5 },
    today: { max_in_flight: 2, rate: { count: 3, per_seconds: 3600 } },
    throttled_for: 'captchas',
  });
  await worker.leave();
  await engine.advance('10 minutes');
  await engine.sql.query('select millrace.sweep()');
  expect(await state(engine)).toMatchObject({
    today: { max_in_flight: 5 },
    throttled_for: null,
    throttled_until: null,
  });
  expect(await (await Worker.of(engine, worker.stage)).take(10)).toHaveLength(5);
  expect(await journal(engine)).toMatchObject([
    {
      verb: 'throttle',
      pipeline: null,
      stage: null,
      reason: 'captchas',
      outcome: { limit: 'model', limits: { max_in_flight: 2 } },
    },
  ]);
});

test('a throttle may raise a budget for a while, and a definition comes under it', async ({ engine }) => {
  const worker = await limited(engine, { spending: { usd: 1, per_seconds: 86_400 } });
  const item = await worker.takeOne();
  await worker.complete([{ ...completed(item), usage: { cost_usd: 1 } }]);
  await engine.sql.query('select millrace.sweep()');
  expect(await worker.take(10)).toEqual([]);
  await throttle(engine, { spending: { usd: 4, per_seconds: 86_400 } });
  expect(await worker.take(10)).toHaveLength(3);
  await engine.sql.query(`select millrace.define_limit('model', '{"max_in_flight": 9}')`);
  expect(await state(engine)).toMatchObject({
    declared: { max_in_flight: 9 },
    today: { max_in_flight: 9, spending: { usd: 4 } },
  });
  await engine.sql.query(`select millrace.unthrottle_limit('model')`);
  expect(await state(engine)).toMatchObject({ today: { max_in_flight: 9 } });
  expect(await worker.take(10)).toHaveLength(6);
});

test('a throttle without an end, without a reason, of nothing or over no limit is refused', async ({ engine }) => {
  await limited(engine, { max_in_flight: 5 });
  const refusal = async (
    limits: unknown,
    until = `millrace.now() + interval '1 hour'`,
    reason = 'why',
    name = 'model',
  ) => engine.refusal(`select millrace.throttle_limit($1, $2, ${until}, $3)`, [name, JSON.stringify(limits), reason]);
  expect(await refusal({ max_in_flight: 0 })).toMatchObject({
    code: 'MR002',
    message: 'shared limit model: limits.max_in_flight is 0, but must be a whole number from 1 to 10000',
  });
  expect((await refusal({ max_in_flight: 1 }, 'null')).message).toMatch(/^until is missing/);
  expect((await refusal({ max_in_flight: 1 }, undefined, ' ')).message).toBe(
    'reason is missing, but throttle needs it',
  );
  expect(await refusal({ max_in_flight: 1 }, undefined, 'why', 'modell')).toMatchObject({
    code: 'MR003',
    message: 'there is no shared limit modell',
    hint: 'Known: model.',
  });
  expect(await engine.refusal(`select millrace.unthrottle_limit('model')`)).toMatchObject({
    code: 'MR004',
    message: 'shared limit model has no throttle, and no service has paused it',
  });
  expect(await journal(engine)).toEqual([]);
});

test('an operator throttles a limit by its name, and the doctor tells of it', async ({ engine }) => {
  const worker = await limited(engine, { max_in_flight: 5 });
  const ann = await signIn(engine, 'ann', {});
  await ann.act('throttle', { limit: 'model', limits: { max_in_flight: 1 }, minutes: 5, reason: 'captchas' });
  expect(await worker.take(10)).toHaveLength(1);
  expect(await engine.rows(`select ok, detail from millrace.doctor() where what like 'shared limit%'`)).toEqual([
    { ok: true, detail: 'throttled until 2026-11-02 09:05:00: captchas' },
  ]);
  await ann.act('unthrottle', { limit: 'model' });
  expect(await worker.take(10)).toHaveLength(4);
  expect(await journal(engine)).toMatchObject([
    { verb: 'throttle', subject: 'ann', reason: 'captchas', outcome: { limit: 'model', until: expect.any(String) } },
    { verb: 'unthrottle', subject: 'ann', outcome: { limit: 'model' } },
  ]);
  await expect(ann.act('unthrottle', { limit: 'model' })).rejects.toMatchObject({
    code: 'MR004',
    message: 'shared limit model has no throttle, and no service has paused it',
  });
  await expect(ann.act('throttle', { minutes: 5, reason: 'captchas', limits: {} })).rejects.toMatchObject({
    code: 'MR002',
  });
});

test('an operator of some pipelines throttles their stages, and neither sees nor throttles what several share', async ({
  engine,
}) => {
  const worker = await limited(engine, { max_in_flight: 5 });
  const ben = await signIn(engine, 'ben', { pipelines: ['flow'] });
  const request = { limits: { max_in_flight: 1 }, minutes: 5, reason: 'captchas' };
  for (const limit of ['model', 'none']) {
    for (const verb of ['throttle', 'unthrottle'])
      await expect(ben.act(verb, { ...request, limit })).rejects.toMatchObject({
        code: '42501',
        message: 'a shared limit is throttled by who sees all pipelines',
      });
  }
  expect(await ben.ask('limits')).toMatchObject({ limits: [] });
  expect(await worker.take(10)).toHaveLength(5);
});
