import { expect } from 'vitest';
import {
  childStatuses,
  collectChildren,
  collected,
  defineFamily,
  endFiles,
  failFiles,
  fileRun,
  folderRun,
  folderStatuses,
  numbers,
  runFiles,
  Spawner,
  spawnAll,
  stageAttempts,
  startFolders,
  sweep,
  waitingFolder,
} from '../../support/engine/children.ts';
import { type Engine, type Row, test } from '../../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { completed, runStage, Worker } from '../../support/worker.ts';

/** A folder whose files all run, under this fan-in rule. */
const joining = (engine: Engine, count: number, fanIn: Row, more: Row = {}) =>
  waitingFolder(engine, count, { split: { fan_in: fanIn, ...more } });

const result = (engine: Engine, folder?: string) =>
  engine.value('select split_result from public.folders where id = coalesce($1, id)', [folder]);
const fault = (engine: Engine) => engine.value<string>('select split_error from public.folders');
const tallies = (engine: Engine) => engine.value('select count(*)::int from millrace.child_tallies');

test('under the rule all the stage is done when the last child has ended, with the sums as its result', async ({
  engine,
}) => {
  const { folder, fanOut } = await waitingFolder(engine, 3);
  await endFiles(engine, [1, 2]);
  expect(await collected(engine, folder)).toBe('started');
  await endFiles(engine, [3]);
  const answer = await collectChildren(engine, [fanOut]);
  expect(answer).toEqual({
    wake: [{ pipeline: 'folder', stage: 'publish', function: 'folder-publish' }],
    busy: [],
    collect: [],
  });
  expect(await folderStatuses(engine, folder)).toEqual({ split: 'completed', publish: 'queued' });
  expect(await result(engine)).toEqual({ total: 3, completed: 3, failed: 0, cancelled: 0 });
  const { needs } = await (await Worker.of(engine, 'publish', 'folder')).takeOne();
  expect(needs).toEqual({ split: { total: 3, completed: 3, failed: 0, cancelled: 0 } });
});

test('failed_children fail: the first failure fails the stage, and the sweep cancels the others', async ({
  engine,
}) => {
  const { folder, fanOut } = await waitingFolder(engine, 4);
  await endFiles(engine, [1]);
  await failFiles(engine, [3]);
  expect(await collected(engine, folder)).toBe('failed');
  expect(await fault(engine)).toBe('1 of 4 children failed and 0 were cancelled; the first: 3, scan: it took too long');
  expect((await folderRun(engine, folder)).status).toBe('failed');
  expect(await sweep(engine)).toMatchObject({ cancelled: 2 });
  expect(await childStatuses(engine, fanOut)).toEqual({ cancelled: 2, completed: 1, failed: 1 });
  expect(await engine.value('select state from millrace.fan_outs')).toBe('closed');
});

test('a child that is cancelled counts as failed, with a word of its own', async ({ engine }) => {
  const { folder, fanOut } = await waitingFolder(engine, 2);
  await engine.sql.query('select millrace.cancel($1)', [(await fileRun(engine, fanOut, 2)).id]);
  expect(await collected(engine, folder)).toBe('failed');
  expect(await engine.value(`select error_code from millrace.dead_letters where pipeline = 'folder'`)).toBe(
    'child_cancelled',
  );
  expect(await fault(engine)).toMatch(/^0 of 2 children failed and 1 was cancelled; the first: 2, /);
});

test('failed_children ignore: the stage is done with what the others brought', async ({ engine }) => {
  const { folder } = await joining(engine, 3, { failed_children: 'ignore' });
  await failFiles(engine, [1]);
  await endFiles(engine, [2]);
  expect(await collected(engine, folder)).toBe('started');
  await endFiles(engine, [3]);
  expect(await collected(engine, folder)).toBe('completed');
  expect(await result(engine)).toEqual({ total: 3, completed: 2, failed: 1, cancelled: 0 });
});

test('a deadline fails the stage, without another try, and its children are cancelled', async ({ engine }) => {
  const { folder, fanOut } = await joining(engine, 2, { deadline_seconds: 600 });
  await endFiles(engine, [1]);
  await engine.advance('9 minutes');
  await sweep(engine);
  expect(await folderStatuses(engine, folder)).toMatchObject({ split: 'started' });
  await engine.advance('1 minute');
  await sweep(engine);
  expect(await stageAttempts(engine, folder, 'split')).toEqual(['1 failed']);
  expect(await fault(engine)).toMatch(/deadline/);
  expect(await childStatuses(engine, fanOut)).toEqual({ cancelled: 1, completed: 1 });
});

test('without a deadline of its own a map is given a week', async ({ engine }) => {
  await waitingFolder(engine, 1);
  expect(
    await engine.value(
      `select deadline_at - millrace.now() = interval '7 days' from millrace.attempts where state = 'waiting'`,
    ),
  ).toBe(true);
});

test('children that complete neither lock nor write a row of their parent', async ({ engine }) => {
  const { folder, fanOut } = await waitingFolder(engine, 3, {
    beside: [{ name: 'peek', after: [{ map: 'split', stage: 'scan', count: 1 }] }],
  });
  await collectChildren(engine);
  const versions = `select (select xmin::text || ctid from public.folders where id = $1) as entity,
    (select array_agg(a.xmin::text || a.ctid order by a.id) from millrace.attempts a where a.run_id = f.run_id) as attempts,
    (select r.xmin::text || r.ctid from millrace.runs r where r.id = f.run_id) as run, f.xmin::text || f.ctid as fan_out
    from millrace.fan_outs f where f.id = ${fanOut}`;
  const before = await engine.rows(versions, [folder]);
  const holder = await openTransaction(engine);
  await holder.query(`
    select from public.folders for update; select from millrace.runs r where r.id in (select run_id from millrace.fan_outs) for update;
    select from millrace.attempts a where a.run_id in (select run_id from millrace.fan_outs) for update; select from millrace.fan_outs for update`);
  await endFiles(engine, [1, 2]);
  await failFiles(engine, [3]);
  expect(await childStatuses(engine, fanOut)).toEqual({ completed: 2, failed: 1 });
  await holder.query('commit');
  const after = (await engine.rows(versions, [folder])).map((row) => row);
  expect(after).toEqual(before);
  expect(await tallies(engine)).toBeGreaterThan(0);
});

test('a batch of children leaves one tally a stage and one for the runs that ended', async ({ engine }) => {
  await waitingFolder(engine, 50, { beside: [{ name: 'peek', after: [{ map: 'split', stage: 'blend', count: 99 }] }] });
  await collectChildren(engine);
  await endFiles(engine);
  expect(await engine.rows('select done, completed, failed from millrace.child_tallies order by done')).toEqual([
    { done: 0, completed: 50, failed: 0 },
    { done: 50, completed: 0, failed: 0 },
  ]);
});

test('a collection that finds its parent held is busy and changes nothing, and the sweep makes it good', async ({
  engine,
}) => {
  const { folder, fanOut } = await waitingFolder(engine, 2);
  await endFiles(engine);
  const left = await tallies(engine);
  for (const hold of [
    'select from public.folders for update',
    'select from millrace.runs where fan_out_id is null for update',
  ]) {
    const user = await openTransaction(engine);
    await user.query(hold);
    expect(await collectChildren(engine, [fanOut])).toMatchObject({ wake: [], busy: [fanOut], collect: [] });
    expect(await sweep(engine)).toMatchObject({ collected: 0 });
    expect(await tallies(engine)).toBe(left);
    await user.query('commit');
  }
  expect(await sweep(engine)).toMatchObject({ collected: 1 });
  expect(await folderStatuses(engine, folder)).toEqual({ split: 'completed', publish: 'queued' });
});

test('a parent that somebody holds does not keep the sweep from collecting the others', async ({ engine }) => {
  await defineFamily(engine);
  const [held, free] = (await startFolders(engine, 2)) as [string, string];
  for (const _ of [held, free]) await spawnAll(engine, numbers(1, 1));
  await endFiles(engine);
  const user = await openTransaction(engine);
  await user.query('select from public.folders where id = $1 for update', [held]);
  expect(await sweep(engine)).toMatchObject({ collected: 1 });
  expect(await folderStatuses(engine, free)).toMatchObject({ split: 'completed' });
  await user.query('rollback');
  await sweep(engine);
  expect(await folderStatuses(engine, held)).toMatchObject({ split: 'completed' });
});

test('two collects at once count each tally once', async ({ engine }) => {
  const { fanOut } = await waitingFolder(engine, 3);
  await endFiles(engine, [1, 2]);
  const [one, two] = await Promise.all([
    engine.database.connect('service_role'),
    engine.database.connect('service_role'),
  ]);
  await one.query('begin');
  await collectChildren(engine, [fanOut], one);
  const second = begin(collectChildren(engine, [fanOut], two));
  await untilBlocked(engine, two);
  await one.query('commit');
  expect(await second).toMatchObject({ busy: [] });
  expect(await engine.rows('select completed, failed, cancelled from millrace.fan_outs')).toEqual([
    { completed: 2, failed: 0, cancelled: 0 },
  ]);
});

test('a tally that is written while a collection is under way is left for the next one', async ({ engine }) => {
  const { folder, fanOut } = await waitingFolder(engine, 2);
  await endFiles(engine, [1]);
  await runFiles(engine, 'scan');
  const collecting = await openTransaction(engine);
  await collecting.query('select millrace.collect_children($1)', [fanOut]);
  await runFiles(engine, 'blend');
  await collecting.query('commit');
  expect(await folderStatuses(engine, folder)).toMatchObject({ split: 'started' });
  expect(await collected(engine, folder)).toBe('completed');
});

test('the last two children that end at once, each with its collectChildren, end their parent exactly once', async ({
  engine,
}) => {
  await defineFamily(engine, { files: [{ name: 'scan', max_workers: 2 }] });
  for (let round = 0; round < 8; round += 1) {
    const [folder] = (await startFolders(engine)) as [string];
    const fanOut = await spawnAll(engine, numbers(1, 2));
    const workers = [await Worker.of(engine, 'scan', 'files'), await Worker.of(engine, 'scan', 'files')];
    const items = [await workers[0]?.takeOne(), await workers[1]?.takeOne()];
    await Promise.all(
      workers.map(async (worker, place) => {
        await worker.complete([completed(items[place] as never)]);
        await collectChildren(engine, [fanOut], worker.client);
        await worker.leave(true);
      }),
    );
    expect(await stageAttempts(engine, folder, 'split')).toEqual(['1 completed']);
    expect(await stageAttempts(engine, folder, 'publish')).toEqual(['1 queued']);
  }
});

test('two children under way at once, of which each sees the other as running, are not forgotten', async ({
  engine,
}) => {
  await defineFamily(engine, { files: [{ name: 'scan', max_workers: 2 }] });
  const [folder] = (await startFolders(engine)) as [string];
  const fanOut = await spawnAll(engine, numbers(1, 2));
  const [one, two] = [await Worker.of(engine, 'scan', 'files'), await Worker.of(engine, 'scan', 'files')];
  const [first, second] = [await one.takeOne(), await two.takeOne()];
  await one.client.query('begin');
  await two.client.query('begin');
  await one.complete([completed(first)]);
  await two.complete([completed(second)]);
  await one.client.query('commit');
  await collectChildren(engine, [fanOut], one.client);
  expect(await folderStatuses(engine, folder)).toMatchObject({ split: 'started' });
  await two.client.query('commit');
  await collectChildren(engine, [fanOut], two.client);
  expect(await folderStatuses(engine, folder)).toMatchObject({ split: 'completed' });
});

test('a worker of the children hears whose children to collect', async ({ engine }) => {
  const { fanOut } = await waitingFolder(engine, 1);
  await collectChildren(engine);
  await runFiles(engine, 'scan');
  const worker = await Worker.of(engine, 'blend', 'files');
  const answer = await worker.complete([completed(await worker.takeOne())]);
  expect(answer).toMatchObject({ collect: [fanOut] });
});

test('a row that is deleted counts as cancelled', async ({ engine }) => {
  const { folder } = await joining(engine, 3, { failed_children: 'ignore' });
  await endFiles(engine, [1]);
  await engine.sql.query(`delete from public.items where number in ('1', '2')`);
  expect(await collected(engine, folder)).toBe('started');
  await endFiles(engine, [3]);
  expect(await collected(engine, folder)).toBe('completed');
  expect(await result(engine)).toEqual({ total: 3, completed: 1, failed: 0, cancelled: 2 });
});

test('a parent whose child was deleted fails, and its retry goes on with the children there are', async ({
  engine,
}) => {
  const { folder } = await waitingFolder(engine, 3);
  await endFiles(engine, [1]);
  await engine.sql.query(`delete from public.items where number = '2'`);
  expect(await collected(engine, folder)).toBe('failed');
  await engine.sql.query('select millrace.retry($1)', [(await folderRun(engine, folder)).id]);
  await spawnAll(engine, [{ key: 1 }, { key: 3 }]);
  await endFiles(engine);
  expect(await collected(engine, folder)).toBe('completed');
  expect(await result(engine)).toEqual({ total: 2, completed: 2, failed: 0, cancelled: 0 });
});

test('a parent that is cancelled has its children cancelled by the sweep; those that somebody holds later', async ({
  engine,
}) => {
  const { folder, fanOut } = await waitingFolder(engine, 4);
  await endFiles(engine, [4]);
  await engine.sql.query('select millrace.cancel($1)', [(await folderRun(engine, folder)).id]);
  expect(await childStatuses(engine, fanOut)).toEqual({ completed: 1, running: 3 });
  const user = await openTransaction(engine);
  await user.query(`update public.items set label = 'mine' where number = '2'`);
  expect(await sweep(engine)).toMatchObject({ cancelled: 2 });
  await user.query('commit');
  expect(await sweep(engine)).toMatchObject({ cancelled: 1 });
  expect(await childStatuses(engine, fanOut)).toEqual({ cancelled: 3, completed: 1 });
  expect(await engine.item((await fileRun(engine, fanOut, 2)).entity_id)).toMatchObject({
    scan_status: 'failed',
    scan_error: 'cancelled',
  });
});

test('a parent that is deleted has its children cancelled, and nothing of it is left', async ({ engine }) => {
  const { fanOut } = await waitingFolder(engine, 2, {
    beside: [{ name: 'peek', after: [{ map: 'split', stage: 'scan', count: 9 }] }],
  });
  await endFiles(engine, [1]);
  await collectChildren(engine);
  await engine.sql.query('delete from public.folders');
  expect(await sweep(engine)).toMatchObject({ cancelled: 1 });
  await sweep(engine);
  expect(await engine.rows('select * from millrace.fan_outs')).toEqual([]);
  expect(await engine.rows('select * from millrace.fan_progress')).toEqual([]);
  expect(await tallies(engine)).toBe(0);
  expect(
    await engine.value('select status from millrace.runs where fan_out_id = $1 and item_key = $2', [fanOut, '2']),
  ).toBe('cancelled');
});

test('parent and children deleted together leave nothing', async ({ engine }) => {
  await waitingFolder(engine, 3);
  await engine.sql.query('begin; delete from public.items; delete from public.folders; commit');
  await sweep(engine);
  await sweep(engine);
  for (const table of ['runs', 'attempts', 'fan_outs', 'child_tallies'])
    expect(await engine.rows(`select * from millrace.${table}`)).toEqual([]);
});

test('the retry of a parent retries the children that failed or were cancelled, and no others', async ({ engine }) => {
  const { folder, fanOut } = await waitingFolder(engine, 4);
  await endFiles(engine, [1]);
  await failFiles(engine, [2]);
  expect(await collected(engine, folder)).toBe('failed');
  await sweep(engine);
  await engine.sql.query('select millrace.retry($1)', [(await folderRun(engine, folder)).id]);
  expect(await stageAttempts(engine, folder, 'split')).toEqual(['1 failed', '2 queued']);
  expect(await spawnAll(engine, numbers(1, 4))).toBe(fanOut);
  expect(await childStatuses(engine, fanOut)).toEqual({ completed: 1, running: 3 });
  await endFiles(engine, [2, 3, 4]);
  expect(await collected(engine, folder)).toBe('completed');
  expect(await result(engine)).toEqual({ total: 4, completed: 4, failed: 0, cancelled: 0 });
  const untouched = await fileRun(engine, fanOut, 1);
  expect(await engine.rows('select number, state from millrace.attempts where run_id = $1', [untouched.id])).toEqual([
    { number: 1, state: 'completed' },
    { number: 1, state: 'completed' },
  ]);
});

test('a retry that comes before the sweep keeps the children that still run', async ({ engine }) => {
  const { folder, fanOut } = await waitingFolder(engine, 3);
  await failFiles(engine, [2]);
  expect(await collected(engine, folder)).toBe('failed');
  await engine.sql.query('select millrace.retry($1)', [(await folderRun(engine, folder)).id]);
  expect(await sweep(engine)).toMatchObject({ cancelled: 0 });
  await spawnAll(engine, numbers(1, 3));
  expect(await childStatuses(engine, fanOut)).toEqual({ running: 3 });
  await endFiles(engine);
  expect(await collected(engine, folder)).toBe('completed');
});

test('a retry waits for the sweep that is cancelling the children, and none of them is lost', async ({ engine }) => {
  const { folder, fanOut } = await waitingFolder(engine, 3);
  await failFiles(engine, [2]);
  expect(await collected(engine, folder)).toBe('failed');
  const sweeping = await openTransaction(engine);
  await sweeping.query('select millrace.cancel_children(1)');
  const person = await engine.database.connect();
  const retry = begin(person.query('select millrace.retry($1)', [(await folderRun(engine, folder)).id]));
  await untilBlocked(engine, person);
  await sweeping.query('commit');
  await retry;
  await spawnAll(engine, numbers(1, 3));
  expect(await childStatuses(engine, fanOut)).toEqual({ running: 3 });
});

test('a failed child whose row has run by itself since is followed by a new one when the parent is retried', async ({
  engine,
}) => {
  const { folder, fanOut } = await waitingFolder(engine, 2);
  await endFiles(engine, [1]);
  await failFiles(engine, [2]);
  expect(await collected(engine, folder)).toBe('failed');
  await sweep(engine);
  const former = await fileRun(engine, fanOut, 2);
  await engine.sql.query(`update public.items set scan_status = 'queued' where number = '2'`);
  await runStage(engine, 'scan', 'files');
  await runStage(engine, 'blend', 'files');
  await engine.sql.query('select millrace.retry($1)', [(await folderRun(engine, folder)).id]);
  await spawnAll(engine, numbers(1, 2));
  expect(Number((await fileRun(engine, fanOut, 2)).id)).toBeGreaterThan(Number(former.id) + 1);
  await endFiles(engine, [2]);
  expect(await collected(engine, folder)).toBe('completed');
  expect(await result(engine)).toEqual({ total: 2, completed: 2, failed: 0, cancelled: 0 });
});

test('a parent whose rows another parent has run since starts new children when it is retried', async ({ engine }) => {
  const map = { child: { pipeline: 'files' } };
  await defineFamily(engine, { split: map });
  await engine.insert(3);
  const [first, second] = (await startFolders(engine, 2)) as [string, string];
  const fanOut = await spawnAll(engine, numbers(1, 3));
  await runFiles(engine, 'scan', [1]);
  await runFiles(engine, 'blend', [1]);
  await failFiles(engine, [2]);
  expect(await collected(engine, first)).toBe('failed');
  await sweep(engine);
  await spawnAll(engine, numbers(2, 3));
  const retry = async () => engine.sql.query('select millrace.retry($1)', [(await folderRun(engine, first)).id]);
  // While the other parent waits for them, a map that is retried says so at once.
  await retry();
  const spawner = await Spawner.of(engine);
  const message = `row 2 has a live run of pipeline files that is a child of run ${(await folderRun(engine, second)).id}`;
  await expect(spawner.spawn(numbers(1, 3), true)).rejects.toMatchObject({
    code: 'MR004',
    message: expect.stringContaining(message),
  });
  await spawner.worker.report({ ...completed(spawner.item), outcome: 'failed', error: { permanent: true } });
  await endFiles(engine);
  expect(await collected(engine, second)).toBe('completed');
  // The workers so far are not heard of again.
  await engine.advance('16 seconds');
  await retry();
  expect(await spawnAll(engine, numbers(1, 3))).toBe(fanOut);
  expect(await childStatuses(engine, fanOut)).toEqual({ completed: 1, running: 2 });
  await endFiles(engine);
  expect(await collected(engine, first)).toBe('completed');
  expect(await childStatuses(engine, fanOut)).toEqual({ completed: 3 });
  expect(await result(engine, first)).toEqual({ total: 3, completed: 3, failed: 0, cancelled: 0 });
});

test('a child of a parent that gave it up cannot be retried alone; the remedy is named', async ({ engine }) => {
  const { folder, fanOut } = await waitingFolder(engine, 2);
  await failFiles(engine, [1]);
  expect(await collected(engine, folder)).toBe('failed');
  await sweep(engine);
  const parent = await folderRun(engine, folder);
  expect(await engine.refusal('select millrace.retry($1)', [(await fileRun(engine, fanOut, 1)).id])).toMatchObject({
    code: 'MR004',
    message: expect.stringContaining(`it is a child of run ${parent.id}, which is failed`),
    hint: `Retry the parent with it, select millrace.retry(${parent.id}), or start its row anew with millrace.start().`,
  });
});

test('a child of a map that was completed by hand cannot be retried, and is told to start anew', async ({ engine }) => {
  const { folder, fanOut } = await waitingFolder(engine, 2);
  await engine.sql.query(`select millrace.complete_stage($1, 'split', '{}')`, [(await folderRun(engine, folder)).id]);
  await sweep(engine);
  const late = await fileRun(engine, fanOut, 2);
  expect(await engine.refusal('select millrace.retry($1)', [late.id])).toMatchObject({
    code: 'MR004',
    hint: expect.stringContaining('anew'),
  });
  await engine.sql.query(`select millrace.start('files', $1)`, [late.entity_id]);
  expect((await engine.run(late.entity_id)).status).toBe('running');
});

test('a child that is retried while its parent still waits counts again', async ({ engine }) => {
  const { folder, fanOut } = await joining(engine, 2, { failed_children: 'ignore' });
  await failFiles(engine, [1]);
  await collectChildren(engine);
  await engine.sql.query('select millrace.retry($1)', [(await fileRun(engine, fanOut, 1)).id]);
  await endFiles(engine);
  expect(await collected(engine, folder)).toBe('completed');
  expect(await result(engine)).toEqual({ total: 2, completed: 2, failed: 0, cancelled: 0 });
});

test('a result that the stage’s apply function refuses is tried again over the same children', async ({ engine }) => {
  await engine.sql.query(`create function public.bind(p_items jsonb) returns void language plpgsql as $$
    begin if (select count(*) from millrace.attempts a join millrace.stages s on s.id = a.stage_id where s.name = 'split') = 1 then raise 'no glue'; end if; end $$`);
  const { folder, fanOut } = await joining(engine, 2, {}, { apply: 'public.bind' });
  await endFiles(engine);
  expect(await collected(engine, folder)).toBe('queued');
  await engine.advance('1 minute');
  expect(await spawnAll(engine, numbers(1, 2))).toBe(fanOut);
  expect(await collected(engine, folder)).toBe('completed');
  expect(await stageAttempts(engine, folder, 'split')).toEqual(['1 failed', '2 completed']);
  expect(await engine.value('select count(*)::int from millrace.runs where fan_out_id is not null')).toBe(2);
});

test('a parent without a projection joins all the same', async ({ engine }) => {
  const { folder } = await waitingFolder(engine, 2, { projection: 'none', filesProjection: 'none' });
  await endFiles(engine);
  await collectChildren(engine);
  expect(await stageAttempts(engine, folder, 'publish')).toEqual(['1 queued']);
});

test('of fan-outs that there are not nothing is collected', async ({ engine }) => {
  expect(await collectChildren(engine, [4711])).toEqual({ wake: [], busy: [], collect: [] });
});

const refused: [Row, RegExp][] = [
  [{ rule: 'all' }, /fanIn has the unknown option rule/],
  [{ failed_children: 'retry' }, /fanIn.failedChildren is "retry"/],
  [{ deadline_seconds: 0 }, /fanIn.deadlineSeconds is 0/],
];
test('a fan-in rule that is not well formed is refused when it is defined, with field, value and remedy', async ({
  engine,
}) => {
  for (const [fanIn, message] of refused) {
    await expect(defineFamily(engine, { split: { fan_in: fanIn } })).rejects.toMatchObject({
      code: 'MR001',
      message: expect.stringMatching(message),
      hint: expect.any(String),
    });
  }
});
