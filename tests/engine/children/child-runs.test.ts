import { expect } from 'vitest';
import { compiled } from '../../support/definitions.ts';
import { collectChildren } from '../../support/engine/children.ts';
import { chain, type Engine, type Row, type StageDefinition, test } from '../../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { completed, failed, runStage, Worker } from '../../support/worker.ts';

const contents = (more: Row = {}): StageDefinition => ({
  name: 'contents',
  kind: 'pipeline',
  child: { pipeline: 'index' },
  ...more,
});

/** Defines `index` (find → link) and `flow` (contents, which is a run of index over the same row, → publish). */
async function define(engine: Engine, more: Row = {}, toc = chain(['find', 'link'])): Promise<void> {
  await engine.pipeline(toc, {}, 'index');
  await engine.pipeline([contents(more), { name: 'publish', needs: ['contents'] }]);
}

/** The newest run of an item in a pipeline. */
async function runOf(
  engine: Engine,
  id: string | undefined,
  pipeline = 'index',
): Promise<Row & { id: string; status: string }> {
  const [run] = await engine.rows<Row & { id: string; status: string }>(
    `select r.id, r.status, r.trace_id, r.fan_out_id, r.item_key from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
     where p.name = $2 and r.entity_id = $1 order by r.id desc limit 1`,
    [id, pipeline],
  );
  if (!run) throw new Error(`item ${id} has no run of ${pipeline}`);
  return run;
}

async function failStage(engine: Engine, stage: string, pipeline = 'index'): Promise<void> {
  const worker = await Worker.of(engine, stage, pipeline);
  await worker.complete([failed(await worker.takeOne(), { permanent: true })]);
  await worker.leave();
}

/** A started item whose child run is under way. */
async function started(engine: Engine, more: Row = {}): Promise<string> {
  await define(engine, more);
  return (await engine.queued('contents'))[0] as string;
}

test('the child run begins over the same row, under the same trace, with the statement that starts its stage', async ({
  engine,
}) => {
  await define(engine);
  await engine.configureWakeUps();
  const [id] = await engine.queued('contents');
  expect(await engine.statuses(id)).toEqual({
    find: 'queued',
    link: 'pending',
    contents: 'started',
    publish: 'pending',
  });
  expect((await runOf(engine, id)).trace_id).toBe((await runOf(engine, id, 'flow')).trace_id);
  expect((await engine.wakes()).map(({ body }) => `${body.pipeline}.${body.stage}`)).toEqual(['index.find']);
});

test("the results of the child's last stages are the stage's result, and pass to those that need it", async ({
  engine,
}) => {
  await define(engine, {}, [{ name: 'find' }, { name: 'link', needs: ['find'] }, { name: 'draw', needs: ['find'] }]);
  const [id] = await engine.queued('contents');
  await runStage(engine, 'find', 'index');
  await runStage(engine, 'link', 'index');
  await collectChildren(engine);
  expect(await engine.statuses(id)).toMatchObject({ contents: 'started' });
  await runStage(engine, 'draw', 'index');
  const { wake } = await collectChildren(engine);
  expect(wake).toMatchObject([{ pipeline: 'flow', stage: 'publish' }]);
  const { needs } = await (await Worker.of(engine, 'publish')).takeOne();
  expect(needs).toEqual({ contents: { link: { stage: 'link', entity: id }, draw: { stage: 'draw', entity: id } } });
});

test('a child whose stages are all skipped ends with its parent, by the sweep at the latest', async ({ engine }) => {
  await define(engine, {}, [{ name: 'find', when: '$.entity.label == "nobody"' }]);
  const [id] = await engine.queued('contents');
  expect((await runOf(engine, id)).status).toBe('completed');
  await engine.sql.query('select millrace.sweep()');
  expect(await engine.item(id)).toMatchObject({
    contents_status: 'completed',
    contents_result: { find: null },
    publish_status: 'queued',
  });
});

test('a child run after a stage of its parent begins when that is done; its condition may skip it', async ({
  engine,
}) => {
  await engine.pipeline(chain(['find', 'link']), {}, 'index');
  await engine.pipeline([
    { name: 'scan' },
    contents({ needs: ['scan'], when: '$.entity.label == "item 1"' }),
    { name: 'publish', needs: ['contents'] },
  ]);
  const [one, two] = await engine.queued('scan', 2);
  const worker = await Worker.of(engine, 'scan');
  const { wake } = await worker.complete((await worker.take()).map((item) => completed(item)));
  expect(wake.map(({ stage }) => stage)).toEqual(expect.arrayContaining(['find', 'publish']));
  expect(await engine.statuses(one)).toMatchObject({ find: 'queued', contents: 'started', publish: 'pending' });
  expect(await engine.statuses(two)).toMatchObject({ find: 'pending', contents: 'skipped', publish: 'queued' });
});

test("a failure of the child fails the stage, with the child's stage and error, and without another try", async ({
  engine,
}) => {
  const id = await started(engine);
  await failStage(engine, 'find');
  await collectChildren(engine);
  expect(await engine.statuses(id)).toMatchObject({ find: 'failed', contents: 'failed' });
  expect(await engine.item(id)).toMatchObject({ contents_error: expect.stringContaining('find: it took too long') });
  expect((await runOf(engine, id, 'flow')).status).toBe('failed');
});

test('a parent may go on without its child', async ({ engine }) => {
  const id = await started(engine, { on_failure: 'continue' });
  await failStage(engine, 'find');
  await collectChildren(engine);
  expect(await engine.statuses(id)).toMatchObject({ contents: 'failed', publish: 'queued' });
});

test('a parent that is cancelled has its child cancelled by the sweep', async ({ engine }) => {
  const id = await started(engine);
  await engine.sql.query('select millrace.cancel($1)', [(await runOf(engine, id, 'flow')).id]);
  expect((await runOf(engine, id)).status).toBe('running');
  await engine.sql.query('select millrace.sweep()');
  expect((await runOf(engine, id)).status).toBe('cancelled');
  expect(await engine.statuses(id)).toMatchObject({ find: 'failed', contents: 'failed' });
});

test('a child that is cancelled fails its parent', async ({ engine }) => {
  const id = await started(engine);
  await engine.sql.query('select millrace.cancel($1)', [(await runOf(engine, id)).id]);
  await engine.sql.query('select millrace.sweep()');
  expect((await runOf(engine, id, 'flow')).status).toBe('failed');
  expect(await engine.value('select error_code from millrace.dead_letters')).toBe('child_cancelled');
});

test('the retry of the parent goes on in the same child run, where it failed', async ({ engine }) => {
  const id = await started(engine);
  await runStage(engine, 'find', 'index');
  await failStage(engine, 'link');
  await collectChildren(engine);
  await engine.sql.query('select millrace.sweep()');
  const child = await runOf(engine, id);
  await engine.sql.query('select millrace.retry($1)', [(await runOf(engine, id, 'flow')).id]);
  expect(await engine.statuses(id)).toEqual({
    find: 'completed',
    link: 'queued',
    contents: 'started',
    publish: 'pending',
  });
  expect(await runOf(engine, id)).toMatchObject({ id: child.id, status: 'running' });
  await runStage(engine, 'link', 'index');
  await collectChildren(engine);
  expect(await engine.statuses(id)).toMatchObject({ contents: 'completed', publish: 'queued' });
  const parents = `select a.number, a.state, a.parent_id is not null as follows from millrace.attempts a join millrace.stages s on s.id = a.stage_id where s.name = 'contents' order by a.id`;
  expect(await engine.rows(parents)).toEqual([
    { number: 1, state: 'failed', follows: false },
    { number: 2, state: 'completed', follows: true },
  ]);
});

test('the retry of a parent that was cancelled goes on, before and after the sweep has cancelled the child', async ({
  engine,
}) => {
  const id = await started(engine);
  for (const sweeps of [0, 1]) {
    const parent = (await runOf(engine, id, 'flow')).id;
    await engine.sql.query('select millrace.cancel($1)', [parent]);
    if (sweeps) await engine.sql.query('select millrace.sweep()');
    await engine.sql.query('select millrace.retry($1)', [parent]);
    await engine.sql.query('select millrace.sweep()');
    expect(await engine.statuses(id)).toMatchObject({ find: 'queued', contents: 'started' });
    await engine.expectSound();
  }
  await runStage(engine, 'find', 'index');
  await runStage(engine, 'link', 'index');
  await collectChildren(engine);
  expect(await engine.statuses(id)).toMatchObject({ contents: 'completed' });
});

test('a child that failed is not retried alone once its parent has failed', async ({ engine }) => {
  const id = await started(engine);
  await failStage(engine, 'find');
  await collectChildren(engine);
  const parent = await runOf(engine, id, 'flow');
  expect(await engine.refusal('select millrace.retry($1)', [(await runOf(engine, id)).id])).toMatchObject({
    code: 'MR004',
    hint: expect.stringContaining(`millrace.retry(${parent.id})`),
  });
});

test('a stage that starts over when it was done starts its child anew', async ({ engine }) => {
  const id = await started(engine);
  await runStage(engine, 'find', 'index');
  await runStage(engine, 'link', 'index');
  await collectChildren(engine);
  const former = await runOf(engine, id);
  await engine.queue('contents', [id]);
  expect((await runOf(engine, id)).id).not.toBe(former.id);
  expect(await engine.statuses(id)).toEqual({
    find: 'queued',
    link: 'pending',
    contents: 'started',
    publish: 'pending',
  });
});

test('a stage that starts over while its child still runs begins another, and the former one is cancelled', async ({
  engine,
}) => {
  const id = await started(engine);
  await runStage(engine, 'find', 'index');
  const former = await runOf(engine, id);
  await engine.queue('contents', [id]);
  expect(await engine.value('select status from millrace.runs where id = $1', [former.id])).toBe('cancelled');
  expect(await engine.statuses(id)).toEqual({
    find: 'queued',
    link: 'pending',
    contents: 'started',
    publish: 'pending',
  });
  await runStage(engine, 'find', 'index');
  await runStage(engine, 'link', 'index');
  await collectChildren(engine);
  expect(await engine.statuses(id)).toMatchObject({ contents: 'completed', publish: 'queued' });
});

test('a row whose child pipeline runs by itself already fails the stage, and the retry says go once it is over', async ({
  engine,
}) => {
  await define(engine);
  const [id] = (await engine.queued('find')) as [string];
  await engine.queue('contents', [id]);
  expect(await engine.item(id)).toMatchObject({
    contents_status: 'failed',
    contents_error: expect.stringContaining('live run of pipeline index that was started by itself'),
  });
  expect(await engine.value('select error_code from millrace.dead_letters')).toBe('child_running');
  expect(await engine.statuses(id)).toMatchObject({ find: 'queued' });
  await runStage(engine, 'find', 'index');
  await runStage(engine, 'link', 'index');
  await engine.sql.query('select millrace.retry($1)', [(await runOf(engine, id, 'flow')).id]);
  expect(await engine.statuses(id)).toMatchObject({ find: 'queued', contents: 'started' });
  const parents = `select a.number, a.parent_id is not null as follows from millrace.attempts a join millrace.stages s on s.id = a.stage_id where s.name = 'contents' order by a.id`;
  expect(await engine.rows(parents)).toEqual([
    { number: 1, follows: false },
    { number: 2, follows: true },
  ]);
});

test('child runs nest: the innermost ends, and each collection names the next one out', async ({ engine }) => {
  await engine.pipeline([{ name: 'look' }], {}, 'pattern');
  await engine.pipeline(
    [
      { name: 'find', kind: 'pipeline', child: { pipeline: 'pattern' } },
      { name: 'link', needs: ['find'] },
    ],
    {},
    'index',
  );
  await engine.pipeline([contents(), { name: 'publish', needs: ['contents'] }]);
  const [id] = await engine.queued('contents');
  expect(await engine.value('select count(distinct trace_id)::int from millrace.runs')).toBe(1);
  await runStage(engine, 'look', 'pattern');
  await collectChildren(engine);
  expect(await engine.statuses(id)).toMatchObject({ find: 'completed', link: 'queued', contents: 'started' });
  await runStage(engine, 'link', 'index');
  await collectChildren(engine);
  expect(await engine.statuses(id)).toMatchObject({ contents: 'completed', publish: 'queued' });
});

test('a failure passes out through every level, one collection after the other, and a retry goes in again', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'look' }], {}, 'pattern');
  await engine.pipeline([{ name: 'find', kind: 'pipeline', child: { pipeline: 'pattern' } }], {}, 'index');
  await engine.pipeline([contents()]);
  const [id] = await engine.queued('contents');
  await collectChildren(engine);
  await failStage(engine, 'look', 'pattern');
  let next = (await engine.rows<{ id: string }>('select fan_out_id as id from millrace.child_tallies')).map((row) =>
    Number(row.id),
  );
  for (let level = 0; level < 2; level += 1) {
    expect(next).toHaveLength(1);
    next = (await collectChildren(engine, next)).collect;
  }
  expect(await engine.statuses(id)).toEqual({ look: 'failed', find: 'failed', contents: 'failed' });
  await engine.sql.query('select millrace.sweep()');
  await engine.sql.query('select millrace.retry($1)', [(await runOf(engine, id, 'flow')).id]);
  expect(await engine.statuses(id)).toEqual({ look: 'queued', find: 'started', contents: 'started' });
  await runStage(engine, 'look', 'pattern');
  for (let level = 0; level < 2; level += 1) await collectChildren(engine);
  expect((await runOf(engine, id, 'flow')).status).toBe('completed');
});

test('a row that is deleted takes its run and its child run with it', async ({ engine }) => {
  const id = await started(engine);
  await engine.sql.query('delete from public.items where id = $1', [id]);
  await engine.sql.query('select millrace.sweep()');
  for (const table of ['runs', 'attempts', 'child_tallies', 'fan_outs'])
    expect(await engine.rows(`select * from millrace.${table}`)).toEqual([]);
});

test('a completion that begins a child run never waits for a user, though its own pipeline writes no columns', async ({
  engine,
}) => {
  await engine.pipeline(chain(['find', 'link']), {}, 'index');
  await engine.pipeline([{ name: 'scan' }, contents({ needs: ['scan'] })], { projection: 'none' });
  const [id] = await engine.insert();
  await engine.sql.query(`select millrace.start('flow', $1)`, [id]);
  const worker = await Worker.of(engine, 'scan');
  const item = await worker.takeOne();
  const user = await openTransaction(engine);
  await user.query(`update public.items set label = 'mine' where id = $1`, [id]);
  expect(await worker.report(completed(item))).toEqual(['busy']);
  await user.query('commit');
  expect(await worker.report(completed(item))).toEqual(['accepted']);
  expect(await engine.item(id)).toMatchObject({ find_status: 'queued' });
});

test('a cancel of the parent and the end of its child take turns', async ({ engine }) => {
  const id = await started(engine);
  await runStage(engine, 'find', 'index');
  await runStage(engine, 'link', 'index');
  const collecting = await openTransaction(engine);
  const fanOut = await engine.value('select id from millrace.fan_outs');
  await collecting.query('select millrace.collect_children($1)', [fanOut]);
  const person = await engine.database.connect();
  const cancel = person.query('select millrace.cancel($1)', [(await runOf(engine, id, 'flow')).id]);
  await untilBlocked(engine, person);
  await collecting.query('commit');
  await cancel;
  expect(await engine.statuses(id)).toMatchObject({ contents: 'completed', publish: 'failed' });
});

test("of two pipelines that are defined at once, each as the other's parent, the second is refused", async ({
  engine,
}) => {
  await engine.pipeline(chain(['find']), {}, 'index');
  await engine.pipeline([{ name: 'publish' }]);
  const parent = (pipeline: string, stage: string, child: string) =>
    compiled({
      pipeline,
      entity: { table: 'public.items', key: 'id', projection: 'none' },
      stages: [{ name: stage, kind: 'pipeline', child: { pipeline: child } }],
    });
  const first = await openTransaction(engine);
  await first.query('select millrace.define($1)', [parent('flow', 'publish', 'index')]);
  const second = await engine.database.connect();
  const defined = begin(second.query('select millrace.define($1)', [parent('index', 'find', 'flow')]));
  await untilBlocked(engine, second);
  await first.query('commit');
  await expect(defined).rejects.toMatchObject({
    code: 'MR001',
    message: expect.stringMatching(/does not start this one in turn/),
  });
});

test('pipelines that contain themselves or one another are refused when they are defined', async ({ engine }) => {
  await define(engine);
  const recursive: [string, StageDefinition[], RegExp][] = [
    ['index', [{ name: 'find', kind: 'pipeline', child: { pipeline: 'index' } }], /does not start this one in turn/],
    ['index', [{ name: 'find', kind: 'pipeline', child: { pipeline: 'flow' } }], /does not start this one in turn/],
    ['index', [{ name: 'find', kind: 'map', child: { pipeline: 'flow' } }], /does not start this one in turn/],
    ['fresh', [{ name: 'own', kind: 'pipeline', child: { pipeline: 'fresh' } }], /defined already/],
    [
      'fresh',
      [{ name: 'own', kind: 'pipeline' }],
      /child is missing, but must be an object with the name of a pipeline/,
    ],
    [
      'fresh',
      [{ name: 'own', kind: 'pipeline', child: { pipeline: 'index', insert: 'public.x' } }],
      /child has the unknown option insert/,
    ],
    [
      'fresh',
      [{ name: 'own', kind: 'pipeline', child: { pipeline: 'index' }, fan_in: {} }],
      /unknown option fanIn.*A stage of kind pipeline takes/,
    ],
    [
      'fresh',
      [{ name: 'own', kind: 'map', child: { pipeline: 'index', insert: 'public.missing' } }],
      /child.insert is "public.missing"/,
    ],
    ['fresh', [{ name: 'own', child: { pipeline: 'index' } }], /unknown option child.*A stage of kind function takes/],
  ];
  for (const [pipeline, stages, message] of recursive) {
    await expect(engine.pipeline(stages, {}, pipeline)).rejects.toMatchObject({
      code: 'MR001',
      message: expect.stringMatching(message),
      hint: expect.any(String),
    });
  }
  await expect(engine.pipeline([contents()], { table: 'public.others' }, 'fresh')).rejects.toMatchObject({
    code: 'MR001',
    message: expect.stringContaining('over the same table and key'),
    hint: expect.stringContaining('map'),
  });
});

test('two stages side by side cannot start runs of one pipeline on the same row', async ({ engine }) => {
  await define(engine);
  const beside = (first: Row, second: Row) =>
    engine.pipeline([{ name: 'scan' }, contents({ name: 'left', ...first }), contents({ name: 'right', ...second })]);
  await expect(beside({ needs: ['scan'] }, { needs: ['scan'], when: '$.entity.id > 1' })).rejects.toMatchObject({
    code: 'MR001',
    message: expect.stringContaining('stages.left.child.pipeline is index, which right beside it starts too'),
    hint: expect.stringMatching(/let one of them need the other, or give them child pipelines of their own/),
  });
  await beside({ needs: ['scan'] }, { needs: ['left'] });
  // Of alternatives a run takes one.
  await beside({ when: '$.entity.id == 1' }, { when: '$.entity.id != 1' });
});

test('a run whose row another pipeline has run the same child on since begins a new one when it is retried', async ({
  engine,
}) => {
  await define(engine);
  await engine.pipeline([contents({ name: 'other' })], {}, 'second');
  const [id] = await engine.queued('contents');
  await failStage(engine, 'find');
  await collectChildren(engine);
  const failedRun = await runOf(engine, id);
  const parent = await runOf(engine, id, 'flow');
  expect(parent.status).toBe('failed');
  await engine.queue('other', [id as string]);
  const retry = () => engine.sql.query('select millrace.retry($1)', [parent.id]);
  await retry();
  expect(await engine.item(id)).toMatchObject({
    contents_status: 'failed',
    contents_error: expect.stringContaining(
      `a live run of pipeline index that is a child of run ${(await runOf(engine, id, 'second')).id}. Let it finish`,
    ),
  });
  await runStage(engine, 'find', 'index');
  await runStage(engine, 'link', 'index');
  await collectChildren(engine);
  expect((await runOf(engine, id, 'second')).status).toBe('completed');
  await retry();
  expect(Number((await runOf(engine, id)).id)).toBeGreaterThan(Number(failedRun.id) + 1);
  await runStage(engine, 'find', 'index');
  await runStage(engine, 'link', 'index');
  await collectChildren(engine);
  expect(await engine.statuses(id)).toMatchObject({ contents: 'completed', publish: 'queued' });
});
