// A throttle: a stage's rate or places in flight, over its definition, for a while.

import { expect } from 'vitest';
import { compiled } from '../../support/definitions.ts';
import { journal, signIn } from '../../support/engine/operators.ts';
import { chain, type Engine, type Row, test } from '../../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { completed, Worker } from '../../support/worker.ts';

const limits = (engine: Engine, stage = 'one') =>
  engine.value<Row | null>(
    `select s.limits from millrace.stages s join millrace.pipelines p on p.id = s.pipeline_id
     where p.name = 'flow' and s.name = $1`,
    [stage],
  );
const throttle = (engine: Engine, by: Row, minutes = 60, stage = 'one') =>
  engine.sql.query(`select millrace.throttle('flow', $1, $2, millrace.now() + make_interval(mins => $3), 'captchas')`, [
    stage,
    JSON.stringify(by),
    minutes,
  ]);
const unthrottle = (engine: Engine) => engine.sql.query(`select millrace.unthrottle('flow', 'one')`);

test('a stage without limits has places in flight, and none when its time is over', async ({ engine }) => {
  await engine.configureWakeUps();
  await engine.pipeline(chain(['one', 'two']));
  await engine.queued('one', 9);
  await throttle(engine, { max_in_flight: 3 });
  const worker = await Worker.of(engine, 'one');
  const batch = await worker.take();
  expect(batch).toHaveLength(3);
  expect(await worker.take()).toEqual([]);
  expect((await worker.complete([completed(batch[0] as never)], 10)).batch).toHaveLength(1);
  await engine.advance('61 minutes');
  await engine.sql.query('select millrace.sweep()');
  expect(await limits(engine)).toBeNull();
  expect(await worker.take()).toHaveLength(5);
  expect(await journal(engine)).toMatchObject([
    { verb: 'throttle', stage: 'one', reason: 'captchas', outcome: { limits: { max_in_flight: 3 } } },
  ]);
});

test('a rate holds across claims, and what was in work before it counts for places in flight', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await engine.queued('one', 20);
  const worker = await Worker.of(engine, 'one');
  expect(await worker.take(4)).toHaveLength(4);
  await throttle(engine, { rate: { count: 2, per_seconds: 60 }, max_in_flight: 7 });
  expect(await worker.take()).toHaveLength(2);
  expect(await worker.take()).toHaveLength(0);
  await engine.advance('60 seconds');
  expect(await worker.take()).toHaveLength(1);
  await throttle(engine, { max_in_flight: 9 });
  expect(await worker.take()).toHaveLength(2);
});

test('over the limits of a definition: its own hold again after it, as they are by then', async ({ engine }) => {
  const rate = { count: 100, per_seconds: 1 };
  const definition = await engine.pipeline(chain(['one'], { limits: { max_in_flight: 5, rate } }));
  await throttle(engine, { max_in_flight: 2 });
  expect(await limits(engine)).toEqual({ max_in_flight: 2, rate });
  await engine.queued('one', 9);
  const worker = await Worker.of(engine, 'one');
  expect(await worker.take()).toHaveLength(2);
  const change = (next?: Row) =>
    engine.define({ ...definition, stages: [{ name: 'one', ...(next ? { limits: next } : {}) }] });
  await change({ max_in_flight: 6, rate: { count: 100, per_seconds: 1 } });
  expect(await limits(engine)).toEqual({ max_in_flight: 2, rate: { count: 100, per_seconds: 1 } });
  expect(await worker.take()).toHaveLength(0);
  await change();
  expect(await limits(engine)).toEqual({ max_in_flight: 2 });
  // Attempts in work are still counted.
  expect(await worker.take()).toHaveLength(0);
  await change({ max_in_flight: 3 });
  await unthrottle(engine);
  expect(await limits(engine)).toEqual({ max_in_flight: 3 });
  expect(await worker.take()).toHaveLength(1);
});

test('a second throttle takes the place of the first, and the definition’s own limits stay known', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one'], { limits: { max_in_flight: 5 } }));
  await throttle(engine, { max_in_flight: 2 });
  await throttle(engine, { rate: { count: 1, per_seconds: 1 } }, 5);
  expect(await limits(engine)).toEqual({ max_in_flight: 5, rate: { count: 1, per_seconds: 1 } });
  await unthrottle(engine);
  expect(await limits(engine)).toEqual({ max_in_flight: 5 });
  expect(await engine.refusal(`select millrace.unthrottle('flow', 'one')`)).toMatchObject({
    code: 'MR004',
    message: 'stage one of pipeline flow has no throttle',
  });
});

test('lifting one wakes the stage', async ({ engine }) => {
  await engine.configureWakeUps();
  await engine.pipeline(chain(['one']));
  await throttle(engine, { max_in_flight: 1 });
  await engine.queued('one', 3);
  const worker = await Worker.of(engine, 'one');
  await worker.takeOne();
  await worker.leave();
  await engine.advance('1 minute');
  const before = (await engine.wakes()).length;
  await unthrottle(engine);
  expect(await engine.wakes()).toHaveLength(before + 1);
});

test('a clock that is set back lengthens a throttle and breaks nothing', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await throttle(engine, { rate: { count: 1, per_seconds: 60 } }, 10);
  await engine.queued('one', 3);
  const worker = await Worker.of(engine, 'one');
  expect(await worker.take()).toHaveLength(1);
  await engine.advance('-1 hour');
  await engine.sql.query('select millrace.sweep()');
  expect(await worker.take()).toHaveLength(0);
  await engine.advance('71 minutes');
  await engine.sql.query('select millrace.sweep()');
  expect(await limits(engine)).toBeNull();
  expect(await worker.take()).toHaveLength(2);
});

test('of two operators who throttle at once, the later word holds and the definition’s own are kept', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one'], { limits: { max_in_flight: 8 } }));
  const [ann, ben] = [await signIn(engine, 'ann', {}), await signIn(engine, 'ben', {})];
  const request = { pipeline: 'flow', stage: 'one', minutes: 5, reason: 'captchas' };
  await ann.client.query('begin');
  await ann.act('throttle', { ...request, limits: { max_in_flight: 4 } });
  const late = begin(ben.act('throttle', { ...request, limits: { max_in_flight: 2 } }));
  await untilBlocked(engine, ben.client);
  await ann.client.query('commit');
  await late;
  expect(await limits(engine)).toEqual({ max_in_flight: 2 });
  expect(await engine.value('select declared from millrace.throttles')).toEqual({ max_in_flight: 8 });
  const overview = await ann.ask('pipeline', { pipeline: 'flow' });
  expect(overview).toMatchObject({
    health: [{ stage: 'one', throttle: { limits: { max_in_flight: 2 }, reason: 'captchas', by: 'ben' } }],
  });
  await ann.act('unthrottle', { pipeline: 'flow', stage: 'one' });
  expect(await limits(engine)).toEqual({ max_in_flight: 8 });
});

test('a throttle and a definition at once: the later waits, and both hold', async ({ engine }) => {
  const definition = await engine.pipeline(chain(['one'], { limits: { max_in_flight: 8 } }));
  const definer = await openTransaction(engine);
  const stages = [{ name: 'one', limits: { max_in_flight: 9 } }];
  await definer.query('select millrace.define($1)', [compiled({ ...definition, stages })]);
  const ann = await signIn(engine, 'ann', {});
  const request = { pipeline: 'flow', stage: 'one', minutes: 5, reason: 'captchas', limits: { max_in_flight: 2 } };
  const late = begin(ann.act('throttle', request));
  await untilBlocked(engine, ann.client);
  await definer.query('commit');
  await late;
  expect(await limits(engine)).toEqual({ max_in_flight: 2 });
  expect(await engine.value('select declared from millrace.throttles')).toEqual({ max_in_flight: 9 });
});

test('a faulty throttle is refused with its field named, and nothing is changed', async ({ engine }) => {
  await engine.pipeline([{ name: 'one' }, { name: 'ask', needs: ['one'], kind: 'manual', decision: { schema: {} } }]);
  const ann = await signIn(engine, 'ann', {});
  const good = { pipeline: 'flow', stage: 'one', minutes: 5, reason: 'captchas', limits: { max_in_flight: 2 } };
  const cases: [Row, string, string][] = [
    [
      { limits: { max_in_flight: 0 } },
      'MR002',
      'limits.max_in_flight is 0, but must be a whole number from 1 to 10000',
    ],
    [{ limits: { rate: { count: 0, per_seconds: 1 } } }, 'MR002', 'limits.rate.count is 0, but must be'],
    [{ limits: {} }, 'MR002', 'limits is {}, but must be an object of rate, max_in_flight or both'],
    [{ limits: { burst: 1 } }, 'MR002', 'limits.burst is not known'],
    [{ limits: undefined }, 'MR002', 'limits is null, but must be'],
    [{ minutes: 0 }, 'MR002', 'p_request.minutes is 0, but must be'],
    [{ minutes: undefined }, 'MR002', 'until is missing, but must be a time from now'],
    [{ minutes: undefined, until: '2026-11-01' }, 'MR002', 'but must be a time from now'],
    [{ reason: ' ' }, 'MR002', 'reason is missing, but throttle needs it'],
    [{ stage: 'ask' }, 'MR004', 'stage ask cannot be throttled: no worker takes anything of a manual stage'],
    [{ stage: undefined }, 'MR002', 'stage is missing, but throttle needs it'],
  ];
  for (const [change, code, message] of cases) {
    expect(await ann.refused('throttle', { ...good, ...change })).toMatchObject({
      code,
      message: expect.stringContaining(message),
    });
  }
  expect(await limits(engine)).toBeNull();
  expect(await journal(engine)).toEqual([]);
});
