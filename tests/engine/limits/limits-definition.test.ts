// The limits of a definition, and the calls that a person makes: each illegal use with its error.
import { expect } from 'vitest';
import { chain, type Row, test } from '../../support/engine.ts';
import { wokenStages } from '../../support/sessions.ts';
import { Worker } from '../../support/worker.ts';

const concurrency = { column: 'label', limit: 2 };
const rate = { count: 1, per_seconds: 1 };

const illegal: [string, unknown, RegExp, RegExp][] = [
  ['an empty list of limits', {}, /stage first: limits is \{\}, but must be an object/, /leave limits out/],
  ['limits that are no object', 5, /limits is 5, but must be an object/, /Set max_in_flight/],
  ['null', null, /limits is null, but must be an object/, /Set max_in_flight/],
  ['an unknown limit', { most: 1 }, /limits has the unknown option most/, /leave it out/],
  ['max_in_flight of nothing', { max_in_flight: 0 }, /limits\.max_in_flight is 0/, /from 1 to 10000/],
  ['max_in_flight that is null', { max_in_flight: null }, /limits\.max_in_flight is null/, /leave it out/],
  ['half an attempt in flight', { max_in_flight: 1.5 }, /must be a whole number/, /from 1 to 10000/],
  ['a rate without a number', { rate: { per_seconds: 1 } }, /limits\.rate\.count is missing/, /each interval/],
  ['a rate without an interval', { rate: { count: 1 } }, /limits\.rate\.per_seconds is missing/, /length/],
  ['a rate of nothing', { rate: { ...rate, count: 0 } }, /limits\.rate\.count is 0/, /from 1 to 1000000/],
  ['an interval of nothing', { rate: { ...rate, per_seconds: 0 } }, /per_seconds is 0/, /from 0.001 to 86400/],
  ['a burst of nothing', { rate: { ...rate, burst: 0 } }, /limits\.rate\.burst is 0/, /from 1/],
  [
    'an unknown part of a rate',
    { rate: { ...rate, every: 1 } },
    /limits\.rate has the unknown option every/,
    /leave it out/,
  ],
  ['a rate that is a number', { rate: 5 }, /limits\.rate is 5, but must be an object/, /leave it out/],
  ['a key without a limit', { concurrency: { column: 'label' } }, /concurrency\.limit is missing/, /same key/],
  ['a key with a limit of nothing', { concurrency: { ...concurrency, limit: 0 } }, /limit is 0/, /from 1 to 1000/],
  ['an unknown column', { concurrency: { ...concurrency, column: 'host' } }, /"host", which is no column/, /key/],
  ['no column', { concurrency: { limit: 1 } }, /column is missing, but must be a column of the entity's table/, /key/],
  ['an unknown part', { concurrency: { ...concurrency, part: 'path' } }, /part is "path"/, /host of a URL/],
  [
    'pressure without a threshold',
    { back_pressure: { stage: 'second' } },
    /back_pressure\.backlog is missing/,
    /how many may be unfinished/,
  ],
  ['pressure by nobody', { back_pressure: { backlog: 1 } }, /back_pressure\.stage is missing/, /after this one/],
  [
    'pressure by itself',
    { back_pressure: { stage: 'first', backlog: 1 } },
    /"first", but must be a stage that comes after this one/,
    /come: second, third/,
  ],
  ['pressure by a stage beside', { back_pressure: { stage: 'beside', backlog: 1 } }, /comes after/, /second, third/],
  ['pressure by an unknown stage', { back_pressure: { stage: 'fourth', backlog: 1 } }, /"fourth"/, /second, third/],
  ['pressure by another pipeline', { back_pressure: { stage: 'other.one', backlog: 1 } }, /"other.one"/, /after/],
  ['a negative threshold', { back_pressure: { stage: 'second', backlog: -1 } }, /backlog is -1/, /from 1 to 100000/],
  [
    'a threshold of 0',
    { back_pressure: { stage: 'second', backlog: 0 } },
    /backlog is 0/,
    /to let nothing through, pause/,
  ],
  [
    'pressure that is a word',
    { back_pressure: 'second' },
    /must be an object of stage and backlog, or a list/,
    /leave/,
  ],
  ['pressure by a list of none', { back_pressure: [] }, /back_pressure is \[\]/, /./],
  [
    'pressure by a list with a wrong one',
    { back_pressure: [{ stage: 'second', backlog: 1 }, { stage: 'third' }] },
    /back_pressure\.1\.backlog is missing/,
    /how many may be unfinished/,
  ],
  [
    'pressure by a list with one beside',
    {
      back_pressure: [
        { stage: 'second', backlog: 1 },
        { stage: 'beside', backlog: 1 },
      ],
    },
    /back_pressure\.1\.stage is "beside", but must be a stage that comes after/,
    /second, third/,
  ],
  [
    'pressure by one stage twice',
    {
      back_pressure: [
        { stage: 'second', backlog: 1 },
        { stage: 'second', backlog: 5 },
      ],
    },
    /back_pressure\.1\.stage is "second", but must be a stage that is named once/,
    /larger backlog/,
  ],
];

test.for(illegal)('a definition is refused for %s', async ([, limits, message, hint], { engine }) => {
  const definition = await engine.pipeline([...chain(['first', 'second', 'third']), { name: 'beside' }]);
  (definition.stages[0] as Row).limits = limits;
  const refusal = await engine.refusedDefinition(definition);
  expect(refusal.code).toBe('MR001');
  expect(refusal.message).toMatch(message);
  expect(refusal.hint).toMatch(hint);
});

test('the last stage can be held back by none', async ({ engine }) => {
  const definition = await engine.pipeline([{ name: 'only' }]);
  (definition.stages[0] as Row).limits = { back_pressure: { stage: 'next', backlog: 1 } };
  const refusal = await engine.refusedDefinition(definition);
  expect(refusal.hint).toContain('No stage comes after this one: leave back_pressure out.');
});

test.for<[string, Row, RegExp, RegExp]>([
  ['places in flight', { limits: { max_in_flight: 1 } }, /limits has the unknown option max_in_flight/, /leave it out/],
  [
    'no limit',
    { limits: {} },
    /must be an object of rate, concurrency, back_pressure or shared/,
    /passes whatever comes/,
  ],
  ['a function', { function: 'flow-gate' }, /unknown option function/, /stage of kind gate takes kind, needs/],
  ['a retry policy', { retry: { max_attempts: 2 } }, /unknown option retry/, /stage of kind gate takes kind, needs/],
])('a gate is refused with %s', async ([, options, message, hint], { engine }) => {
  const definition = await engine.pipeline([{ name: 'gate', kind: 'gate' }]);
  definition.stages = [{ name: 'gate', kind: 'gate', ...options }];
  const refusal = await engine.refusedDefinition(definition);
  expect(refusal.code).toBe('MR001');
  expect(refusal.message).toMatch(message);
  expect(refusal.hint).toMatch(hint);
});

test('a definition with every limit is taken, and changing limits makes no new version', async ({ engine }) => {
  const stages = chain(['first', 'second', 'third']);
  const definition = await engine.pipeline(stages);
  (definition.stages[0] as Row).limits = {
    max_in_flight: 5,
    rate: { ...rate, burst: 3 },
    concurrency: { ...concurrency, part: 'host' },
    back_pressure: { stage: 'third', backlog: 100 },
  };
  expect(await engine.define(definition)).toBe(1);
});

test('a stage that is paused hands out nothing and wakes when it goes on', async ({ engine }) => {
  await engine.configureWakeUps();
  await engine.pipeline(chain(['first', 'second']));
  await engine.sql.query(`select millrace.pause('flow', 'first')`);
  await engine.queued('first');
  const worker = await Worker.of(engine, 'first');
  expect(await worker.claim()).toMatchObject({ status: 'refused', batch: [] });
  await worker.leave();
  await engine.advance('1 minute');
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ woken: 0 });
  await engine.sql.query(`select millrace.unpause('flow', 'first')`);
  expect(await wokenStages(engine)).toEqual(['flow.first']);
  expect(await (await Worker.of(engine, 'first')).take()).toHaveLength(1);
});

test('a pipeline that is paused pauses all its stages; one paused by itself stays so', async ({ engine }) => {
  await engine.configureWakeUps();
  await engine.pipeline([{ name: 'one' }, { name: 'two' }]);
  await engine.sql.query(`select millrace.pause('flow'), millrace.pause('flow', 'two')`);
  const [id] = await engine.insert();
  await engine.sql.query(`select millrace.start('flow', $1)`, [id]);
  for (const stage of ['one', 'two']) {
    const worker = await Worker.of(engine, stage);
    expect(await worker.claim()).toMatchObject({ status: 'refused' });
    await worker.leave();
  }
  await engine.sql.query(`select millrace.unpause('flow')`);
  expect(await wokenStages(engine)).toEqual(['flow.one']);
  expect(await (await Worker.of(engine, 'two')).claim()).toMatchObject({ status: 'refused' });
});

test('to pause what does not exist is refused', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  for (const call of ['pause', 'unpause']) {
    expect(await engine.refusal(`select millrace.${call}('flaw')`)).toMatchObject({
      code: 'MR003',
      message: 'there is no pipeline flaw',
    });
    expect(await engine.refusal(`select millrace.${call}('flow', 'lonely')`)).toMatchObject({
      code: 'MR003',
      message: 'there is no stage lonely in a pipeline flow',
    });
  }
});
