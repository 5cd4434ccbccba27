import { expect } from 'vitest';
import { Spawner } from '../../support/engine/children.ts';
import {
  defineSplit,
  flowAttempts,
  flowStatus,
  insertParts,
  partRuns,
  refused,
  spawnParts,
  verb,
} from '../../support/engine/operations.ts';
import { signIn } from '../../support/engine/operators.ts';
import { chain, type Engine, test } from '../../support/engine.ts';
import { begin, diamond, jobEnd, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { completed, failed, resume, runStage, Worker, waiting } from '../../support/worker.ts';

const external = { kind: 'external', completion: { callback: true } };
const cleared = { job_id: null, result: null, error: null, retry_count: 0, started_at: null, completed_at: null };

/** The seven columns of a stage on its entity. */
async function shown(engine: Engine, id: string | undefined, stage: string) {
  const entries = Object.entries(await engine.item(id)).filter(([column]) => column.startsWith(`${stage}_`));
  return Object.fromEntries(entries.map(([column, value]) => [column.slice(stage.length + 1), value]));
}

async function ranThrough(engine: Engine, stages: string[]): Promise<string | undefined> {
  const [id] = await engine.queued(stages[0] as string);
  for (const stage of stages) await runStage(engine, stage);
  return id;
}

test('a reset stage and its dependents go back, what came before stays, and the run finishes', async ({ engine }) => {
  await engine.pipeline(diamond());
  const id = await ranThrough(engine, ['first', 'left', 'right']);
  await verb(engine, 'reset', id, 'left');
  expect(await engine.statuses(id)).toEqual({
    first: 'completed',
    left: 'queued',
    right: 'completed',
    last: 'pending',
  });
  expect(await shown(engine, id, 'left')).toEqual({ status: 'queued', ...cleared });
  expect(await shown(engine, id, 'last')).toEqual({ status: 'pending', ...cleared });
  await runStage(engine, 'left');
  const [last] = await runStage(engine, 'last');
  expect(last?.needs).toEqual({ left: { stage: 'left', entity: id }, right: { stage: 'right', entity: id } });
  expect(await engine.run(id)).toMatchObject({ status: 'completed' });
});

test('the former result of a reset stage is kept as history and can be read', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  await worker.report(completed(await worker.takeOne(), 'first time'));
  await verb(engine, 'reset', id, 'one');
  await worker.report(completed(await worker.takeOne(), 'second time'));
  expect(await engine.attempts(id)).toEqual([
    'one 1 completed superseded',
    'two 1 cancelled superseded',
    'one 2 completed',
    'two 2 queued',
  ]);
  const outputs = 'select output from millrace.attempts where output is not null order by id';
  expect(await engine.rows(outputs)).toEqual([{ output: 'first time' }, { output: 'second time' }]);
});

test.for(['started', 'waiting'])(
  'a worker or job of a stage that is reset while %s comes too late',
  async (state, { engine }) => {
    await engine.pipeline(chain(['one', 'two'], external));
    const [id] = await engine.queued('one');
    const worker = await Worker.of(engine, 'one');
    const item = await worker.takeOne();
    if (state === 'waiting') await worker.report(waiting(item, 'job-1'));
    await verb(engine, 'reset', id, 'one');
    expect(await worker.report(completed(item))).toEqual(['stale']);
    expect((await resume(engine, [jobEnd(item, 'job-1')])).items).toMatchObject([{ verdict: 'stale' }]);
    expect(await engine.statuses(id)).toEqual({ one: 'queued', two: 'pending' });
  },
);

test('a completed run that is reset runs again and ends again', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  const id = await ranThrough(engine, ['one', 'two']);
  await verb(engine, 'reset', id, 'two');
  expect(await engine.run(id)).toMatchObject({ status: 'running' });
  expect(await engine.value('select finished_at from millrace.runs')).toBeNull();
  await runStage(engine, 'two');
  expect(await engine.run(id)).toMatchObject({ status: 'completed' });
  expect(await engine.value('select count(*)::int from millrace.runs')).toBe(1);
});

test('resetting one branch of a failed run retries what had failed beside it', async ({ engine }) => {
  await engine.pipeline(diamond());
  const [id] = await engine.queued('first');
  await runStage(engine, 'first');
  await runStage(engine, 'left');
  const worker = await Worker.of(engine, 'right');
  await worker.report(failed(await worker.takeOne(), { permanent: true }));
  await verb(engine, 'reset', id, 'left');
  expect(await engine.statuses(id)).toEqual({ first: 'completed', left: 'queued', right: 'queued', last: 'pending' });
  for (const stage of ['left', 'right', 'last']) await runStage(engine, stage);
  expect(await engine.run(id)).toMatchObject({ status: 'completed' });
});

test('a cancelled run that is reset as a whole begins with all its first stages', async ({ engine }) => {
  await engine.pipeline([{ name: 'one' }, { name: 'two' }, { name: 'both', needs: ['one', 'two'] }]);
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  await verb(engine, 'cancel', id);
  await verb(engine, 'reset', id);
  expect(await engine.statuses(id)).toEqual({ one: 'queued', two: 'queued', both: 'pending' });
  for (const stage of ['one', 'two', 'both']) await runStage(engine, stage);
  expect(await engine.run(id)).toMatchObject({ status: 'completed' });
});

test('a reset asks the condition of a stage anew', async ({ engine }) => {
  await engine.pipeline([{ name: 'one' }, { name: 'two', needs: ['one'], when: '$.entity.label == "go"' }]);
  const id = await ranThrough(engine, ['one']);
  expect(await engine.attempts(id)).toEqual(['one 1 completed', 'two 1 skipped']);
  await engine.sql.query(`update public.items set label = 'go' where id = $1`, [id]);
  await verb(engine, 'reset', id, 'two');
  expect(await engine.run(id)).toMatchObject({ status: 'running' });
  expect(await engine.statuses(id)).toEqual({ one: 'completed', two: 'queued' });
});

test('a reset of a stage whose condition no longer holds skips it and ends the run at once', async ({ engine }) => {
  await engine.pipeline([{ name: 'one' }, { name: 'two', needs: ['one'], when: '$.entity.label like_regex "^item"' }]);
  const id = await ranThrough(engine, ['one', 'two']);
  await engine.sql.query(`update public.items set label = 'stop' where id = $1`, [id]);
  await verb(engine, 'reset', id, 'two');
  expect(await engine.run(id)).toMatchObject({ status: 'completed' });
  expect(await engine.attempts(id)).toEqual(['one 1 completed', 'two 1 completed superseded', 'two 2 skipped']);
});

test('a reset manual stage asks again, and the former question is void', async ({ engine }) => {
  await engine.pipeline([{ name: 'one', kind: 'manual' }]);
  const [id] = await engine.queued('one');
  const asked = () => engine.value<string>('select max(attempt_id) from public.millrace_decisions');
  const former = await asked();
  await verb(engine, 'reset', id, 'one');
  expect(await asked()).not.toBe(former);
  expect(await engine.refusal(`select public.millrace_decide($1, '1')`, [former])).toMatchObject({ code: 'MR004' });
  await engine.sql.query(`select public.millrace_decide($1, '1')`, [await asked()]);
  expect(await engine.run(id)).toMatchObject({ status: 'completed' });
});

test('a map that is reset spawns the same rows anew; the sweep cancels the former children in batches', async ({
  engine,
}) => {
  await defineSplit(engine);
  const parts = await insertParts(engine, 3);
  const [id] = await engine.queued('split');
  await spawnParts(engine, parts);
  await runStage(engine, 'scan', 'parts');
  await verb(engine, 'reset', id, 'split');
  // The sweep reaches only two of them before the map spawns again, which meets the third.
  expect(await engine.value('select millrace.cancel_children(2)')).toBe(2);
  await spawnParts(engine, parts);
  for (const part of parts) expect(await partRuns(engine, part)).toEqual(['cancelled', 'running']);
  await runStage(engine, 'scan', 'parts');
  await runStage(engine, 'read', 'parts');
  await engine.sql.query('select millrace.sweep()');
  const [join] = await runStage(engine, 'join');
  expect(join?.needs).toEqual({ split: { total: 3, completed: 3, failed: 0, cancelled: 0 } });
  expect(await flowStatus(engine, id)).toBe('completed');
});

test('a finished map whose late children still run gives them up when it is reset', async ({ engine }) => {
  await defineSplit(engine);
  const parts = await insertParts(engine, 2);
  const [id] = await engine.queued('split');
  const spawner = await Spawner.of(engine, 'split', 'flow');
  await spawner.spawn(
    parts.map((key) => ({ key })),
    true,
  );
  await spawner.worker.report(completed(spawner.item));
  expect(await flowAttempts(engine, id, 'split')).toEqual(['1 completed']);
  await verb(engine, 'reset', id, 'split');
  await spawnParts(engine, parts);
  expect((await partRuns(engine, parts[1])).toSorted()).toEqual(['cancelled', 'running']);
});

/** A map of three children, of which the second has failed at `read`; returns the parent and its parts. */
async function oneFailed(engine: Engine, fanIn: Record<string, unknown>) {
  const early = { name: 'early', after: [{ map: 'split', stage: 'scan', count: 3 }] };
  await defineSplit(engine, [early], { fan_in: fanIn });
  const parts = await insertParts(engine, 3);
  const [id] = await engine.queued('split');
  await spawnParts(engine, parts);
  await runStage(engine, 'scan', 'parts');
  const worker = await Worker.of(engine, 'read', 'parts');
  const batch = await worker.take();
  await worker.report(
    ...batch.map((item) => (item.entity_id === parts[1] ? failed(item, { permanent: true }) : completed(item))),
  );
  await engine.sql.query('select millrace.sweep()');
  return { id, parts };
}

test('failed children of a map that is over go on; it waits again and what needs it starts over', async ({
  engine,
}) => {
  const { id, parts } = await oneFailed(engine, { failed_children: 'ignore' });
  await runStage(engine, 'join');
  expect(await flowAttempts(engine, id, 'early')).toEqual(['1 queued']);
  expect(await verb(engine, 'reset_children', id, 'split')).toBe(1);
  expect(await flowAttempts(engine, id, 'join')).toEqual(['1 completed superseded']);
  // It had begun by a threshold, and stays.
  expect(await flowAttempts(engine, id, 'early')).toEqual(['1 queued']);
  await spawnParts(engine, parts);
  expect(await runStage(engine, 'scan', 'parts')).toEqual([]);
  expect((await runStage(engine, 'read', 'parts')).map((item) => item.entity_id)).toEqual([parts[1]]);
  await engine.sql.query('select millrace.sweep()');
  const [join] = await runStage(engine, 'join');
  expect(join?.needs).toEqual({ split: { total: 3, completed: 3, failed: 0, cancelled: 0 } });
  await runStage(engine, 'early');
  expect(await flowStatus(engine, id)).toBe('completed');
});

test('failed children of a map that has failed go on, and it waits again', async ({ engine }) => {
  const { id, parts } = await oneFailed(engine, {});
  expect(await flowStatus(engine, id)).toBe('failed');
  expect(await verb(engine, 'reset_children', id, 'split')).toBe(1);
  await spawnParts(engine, parts);
  expect(await verb(engine, 'reset_children', id, 'split')).toBe(0);
  await runStage(engine, 'read', 'parts');
  await engine.sql.query('select millrace.sweep()');
  expect(await flowAttempts(engine, id, 'split')).toEqual(['1 failed superseded', '2 completed']);
});

test('children that fail while their map waits for others can go on without it', async ({ engine }) => {
  await defineSplit(engine, [], { fan_in: { failed_children: 'ignore' } });
  const parts = await insertParts(engine, 2);
  const [id] = await engine.queued('split');
  await spawnParts(engine, parts);
  const worker = await Worker.of(engine, 'scan', 'parts');
  await worker.report(failed(await worker.takeOne(), { permanent: true }));
  expect(await verb(engine, 'reset_children', id, 'split')).toBe(1);
  expect(await flowAttempts(engine, id, 'split')).toEqual(['1 waiting']);
  await runStage(engine, 'scan', 'parts');
  await runStage(engine, 'read', 'parts');
  await engine.sql.query('select millrace.sweep()');
  const [join] = await runStage(engine, 'join');
  expect(join?.needs).toEqual({ split: { total: 2, completed: 2, failed: 0, cancelled: 0 } });
});

test('a threshold is counted anew when its stage is reset with the map', async ({ engine }) => {
  const { id, parts } = await oneFailed(engine, { failed_children: 'ignore' });
  await verb(engine, 'reset', id, 'split');
  expect(await flowAttempts(engine, id, 'early')).toEqual(['1 cancelled superseded']);
  await spawnParts(engine, parts);
  await engine.sql.query('select millrace.sweep()');
  expect(await flowAttempts(engine, id, 'early')).toHaveLength(1);
  await runStage(engine, 'scan', 'parts');
  await engine.sql.query('select millrace.sweep()');
  expect(await flowAttempts(engine, id, 'early')).toEqual(['1 cancelled superseded', '2 queued']);
});

test('a stage without children has none to reset', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const [id] = await engine.queued('one');
  expect(await refused(engine, 'reset_children', id, 'one')).toMatchObject({
    code: 'MR004',
    message: expect.stringMatching(/has no children/),
    hint: expect.stringMatching(/millrace\.reset\(run, stage\)/),
  });
});

test('a child whose parent gave it up cannot be reset by itself', async ({ engine }) => {
  await defineSplit(engine);
  const parts = await insertParts(engine, 1);
  const [id] = await engine.queued('split');
  await spawnParts(engine, parts);
  await verb(engine, 'cancel', id);
  await engine.sql.query('select millrace.sweep()');
  const child = await engine.value('select id from millrace.runs where fan_out_id is not null');
  expect(await engine.refusal('select millrace.reset($1)', [child])).toMatchObject({
    code: 'MR004',
    hint: expect.stringMatching(/select millrace\.retry\(\d+\)/),
  });
});

test('a completion that meets a reset is busy, then stale; a reset that meets a completion waits and undoes it', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one', 'two']));
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  const item = await worker.takeOne();
  const person = await openTransaction(engine);
  await person.query(`select millrace.reset($1, 'one')`, [item.run]);
  expect(await worker.report(completed(item))).toEqual(['busy']);
  await person.query('commit');
  expect(await worker.report(completed(item))).toEqual(['stale']);

  const again = await worker.takeOne();
  await worker.client.query('begin');
  expect(await worker.report(completed(again))).toEqual(['accepted']);
  const other = await engine.database.connect();
  const reset = begin(other.query(`select millrace.reset($1, 'one')`, [item.run]));
  await untilBlocked(engine, other);
  await worker.client.query('commit');
  await reset;
  expect(await engine.statuses(id)).toEqual({ one: 'queued', two: 'pending' });
  expect(await engine.attempts(id)).toContain('one 2 completed superseded');
});

test('a reset waits for the user who holds the row', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const id = await ranThrough(engine, ['one']);
  const user = await openTransaction(engine);
  await user.query(`update public.items set label = 'mine' where id = $1`, [id]);
  const person = await engine.database.connect();
  const reset = begin(person.query('select millrace.reset($1)', [(await engine.run(id)).id]));
  await untilBlocked(engine, person);
  await user.query('commit');
  await reset;
  expect(await engine.item(id)).toMatchObject({ label: 'mine', one_status: 'queued' });
});

test('a pipeline stage that is reset starts its child run anew at once, before the sweep has cancelled the former', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'scan' }], {}, 'sub');
  await engine.pipeline([{ name: 'inner', kind: 'pipeline', child: { pipeline: 'sub' } }]);
  const [id] = await engine.queued('inner');
  await verb(engine, 'reset', id, 'inner');
  expect(await flowAttempts(engine, id, 'inner')).toEqual(['1 cancelled superseded', '2 waiting']);
  const children = `select r.status from millrace.runs r where r.fan_out_id is not null order by r.id`;
  expect(await engine.rows(children)).toEqual([{ status: 'cancelled' }, { status: 'running' }]);
  expect(await runStage(engine, 'scan', 'sub')).toHaveLength(1);
  await engine.sql.query('select millrace.sweep()');
  expect(await flowStatus(engine, id)).toBe('completed');
});

test.for(['retry', 'skip', 'reset'])(
  'a run that failed before one of its first stages could begin goes on with it too: %s',
  async (name, { engine }) => {
    await engine.pipeline([{ name: 'scan' }], {}, 'sub');
    await engine.pipeline([{ name: 'inner', kind: 'pipeline', child: { pipeline: 'sub' } }, { name: 'beside' }]);
    const [id] = await engine.insert();
    const other = await engine.value('select millrace.start($1, $2)', ['sub', id]);
    await engine.queue('inner', [id as string]);
    expect(await flowStatus(engine, id)).toBe('failed');
    expect(await flowAttempts(engine, id, 'beside')).toEqual([]);
    await engine.sql.query('select millrace.cancel($1)', [other]);
    await verb(engine, name, id, 'inner');
    expect(await flowStatus(engine, id)).toBe('running');
    expect(await flowAttempts(engine, id, 'beside')).toEqual(['1 queued']);
  },
);

test('the failed child of a pipeline stage goes on where it failed, and the stage that is over waits for it again', async ({
  engine,
}) => {
  await engine.pipeline(chain(['scan', 'read']), {}, 'sub');
  await engine.pipeline([
    { name: 'inner', kind: 'pipeline', child: { pipeline: 'sub' }, on_failure: 'continue' },
    { name: 'after', needs: ['inner'] },
  ]);
  const [id] = await engine.queued('inner');
  await runStage(engine, 'scan', 'sub');
  const worker = await Worker.of(engine, 'read', 'sub');
  await worker.report(failed(await worker.takeOne(), { permanent: true }));
  await engine.sql.query('select millrace.sweep()');
  await runStage(engine, 'after');
  expect(await flowStatus(engine, id)).toBe('completed');
  expect(await verb(engine, 'reset_children', id, 'inner')).toBe(1);
  expect(await flowAttempts(engine, id, 'inner')).toEqual(['1 failed superseded', '2 skipped superseded', '3 waiting']);
  await engine.expectSound();
  expect(await runStage(engine, 'scan', 'sub')).toEqual([]);
  await runStage(engine, 'read', 'sub');
  await engine.sql.query('select millrace.sweep()');
  expect(await runStage(engine, 'after')).toHaveLength(1);
  expect(await flowStatus(engine, id)).toBe('completed');
});

test('a new run that takes a stage over goes on showing it, though the map it awaited begins again', async ({
  engine,
}) => {
  const early = { name: 'early', after: [{ map: 'split', stage: 'read', count: 1 }] };
  await defineSplit(engine, [early, { name: 'other' }]);
  const [id] = await engine.queued('split');
  await verb(engine, 'complete_stage', id, 'other', '1');
  await spawnParts(engine, await insertParts(engine, 2));
  await runStage(engine, 'scan', 'parts');
  const reader = await Worker.of(engine, 'read', 'parts');
  const [part] = await reader.take(1);
  if (part) await reader.report(completed(part));
  await engine.sql.query('select millrace.sweep()');
  await runStage(engine, 'early');
  await verb(engine, 'cancel', id);
  await engine.queue('other', [id as string]);
  expect(await flowAttempts(engine, id, 'early')).toEqual(['1 completed']);
  expect(await engine.statuses(id)).toEqual({ split: 'queued', join: 'pending', early: 'completed', other: 'queued' });
});

/** The schemas of stage `one` in the tests of edits: a result with a score, and a row with a label. */
const form = {
  result: { type: 'object', properties: { score: { type: 'integer', maximum: 9 } }, required: ['score'] },
  row: { type: 'object', additionalProperties: false, properties: { label: { type: 'string', minLength: 2 } } },
};

/** `flow` of two stages, both done, with the first one's result {score: 1}; resolves to the row and a request to edit it. */
async function withResult(engine: Engine) {
  await engine.pipeline(chain(['one', 'two']));
  await engine.sql.query('select millrace_tell_form($1, $2, $3)', ['flow', 'one', JSON.stringify(form)]);
  const [id] = await engine.queued('one');
  const item = await (async (worker) => {
    const taken = await worker.takeOne();
    await worker.report(completed(taken, { score: 1 }));
    return taken;
  })(await Worker.of(engine, 'one'));
  await runStage(engine, 'two');
  const ada = await signIn(engine, 'ada', { payloads: true });
  return { id, run: item.run, ada, request: { run: item.run, stage: 'one', attempt: item.attempt } };
}

test('an edited result takes the place of the former one, what comes of it starts over, and the journal has both', async ({
  engine,
}) => {
  const { id, run, ada, request } = await withResult(engine);
  const reason = 'the site has moved';
  expect(await ada.act('edit', { ...request, result: { score: 7 }, reason })).toMatchObject({ status: 'running' });
  expect(await engine.statuses(id)).toEqual({ one: 'completed', two: 'queued' });
  expect(await shown(engine, id, 'one')).toMatchObject({ status: 'completed', result: { score: 7 } });
  const [two] = await runStage(engine, 'two');
  expect(two?.needs).toEqual({ one: { score: 7 } });
  expect(await engine.run(id)).toMatchObject({ status: 'completed' });
  const { entries } = await ada.ask('journal', { run });
  expect(entries).toMatchObject([
    { verb: 'edit', by: 'ada', reason, outcome: { before: { value: { score: 1 } }, after: { value: { score: 7 } } } },
  ]);
});

test('an edit writes the columns of the row that the stage reads, and the stage starts over', async ({ engine }) => {
  const { id, ada, request } = await withResult(engine);
  await ada.act('edit', { ...request, row: { label: 'new name' } });
  expect(await engine.statuses(id)).toEqual({ one: 'queued', two: 'pending' });
  const [one] = await runStage(engine, 'one');
  expect(one?.entity).toMatchObject({ label: 'new name' });
});

test('an edit that does not fit the schema, or that nobody may make, changes nothing and says what to correct', async ({
  engine,
}) => {
  const { id, ada, request } = await withResult(engine);
  const before = await engine.attempts(id);
  const why = async (more: object) => (await ada.refused('edit', { ...request, ...more })).message;
  expect(await why({ result: { score: 10 } })).toBe('result.score is 10, but must be at most 9');
  expect(await why({ result: null })).toMatch(/^result is null, but must be of type object/);
  expect(await why({ row: { label: 'x' } })).toBe('row.label is "x", but must have at least 2 characters');
  expect(await why({ row: { id: 7 } })).toBe('row.id is not known; known here: label');
  expect(await why({ row: {}, result: {} })).toBe('row stands beside result, but one is edited at a time');
  expect(await why({})).toBe('result is missing, but must be given');
  await engine.sql.query('update millrace.stages set form = null');
  expect(await why({ row: { label: 'xyz' } })).toBe('row.label is not known; known here: nothing');
  expect(await why({ row: {} })).toBe('row is {}, but must have at least 1 field');
  const blind = await signIn(engine, 'ben', {});
  expect(await blind.refused('edit', { ...request, result: { score: 2 } })).toMatchObject({ code: '42501' });
  expect(await engine.attempts(id)).toEqual(before);
  await ada.act('edit', { ...request, result: { score: 2 } });
  expect(JSON.stringify(await blind.ask('journal'))).not.toContain('score');
  expect(JSON.stringify(await blind.ask('run', { run: request.run }))).not.toContain('score');
});

test('of two who edit at once the second is refused, and so is one whose run went on', async ({ engine }) => {
  const { id, ada, request } = await withResult(engine);
  const bob = await signIn(engine, 'bob', { payloads: true });
  await ada.client.query('begin');
  await ada.act('edit', { ...request, result: { score: 7 } });
  const second = bob.refused('edit', { ...request, result: { score: 8 } });
  await untilBlocked(engine, bob.client);
  await ada.client.query('commit');
  expect(await second).toMatchObject({ code: 'MR004', message: expect.stringContaining('has gone on since') });
  const attempt = Number(await engine.value('select max(id) from millrace.attempts where state = $1', ['completed']));
  await runStage(engine, 'two');
  await verb(engine, 'reset', id, 'two');
  expect(await bob.refused('edit', { ...request, attempt, last: attempt, result: { score: 8 } })).toMatchObject({
    code: 'MR004',
  });
  expect(await shown(engine, id, 'one')).toMatchObject({ result: { score: 7 } });
});
