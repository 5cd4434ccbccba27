// Calls that come out of turn or name what is not there: a stage begins once all the same, and nothing waits for what
// cannot come.
import { expect } from 'vitest';
import {
  childStatuses,
  collectChildren,
  collected,
  defineFamily,
  endFiles,
  failFiles,
  folderRun,
  leftFolder,
  numbers,
  runFiles,
  Spawner,
  spawnAll,
  spawningFolder,
  stageAttempts,
  startFolders,
  sweep,
  waitingFolder,
} from '../../support/engine/children.ts';
import { chain, test } from '../../support/engine.ts';
import { failed, runStage, Worker, waiting } from '../../support/worker.ts';

test('the children of a stage whose needs run again are not reset, and it begins once', async ({ engine }) => {
  await defineFamily(engine);
  const split = { name: 'split', kind: 'map', child: { pipeline: 'files', insert: 'public.insert_files' } };
  await engine.pipeline([{ name: 'plan' }, { ...split, needs: ['plan'] }], { table: 'public.folders' }, 'folder');
  const folder = (await startFolders(engine))[0] as string;
  await runStage(engine, 'plan', 'folder');
  await spawnAll(engine, numbers(1, 2));
  const run = (await folderRun(engine, folder)).id;
  await engine.sql.query(`select millrace.reset($1, 'plan')`, [run]);
  await sweep(engine);
  expect(await engine.refusal(`select millrace.reset_children($1, 'split')`, [run])).toMatchObject({
    code: 'MR004',
    hint: 'It spawns its children once its needs are done.',
  });
  await runStage(engine, 'plan', 'folder');
  expect(await stageAttempts(engine, folder, 'split')).toEqual(['1 cancelled superseded', '2 queued']);
});

test('a stage taken over from an older version begins once, though its new need completes later', async ({
  engine,
}) => {
  const definition = await engine.pipeline(chain(['b', 'c']));
  const [id] = await engine.queued('b');
  await runStage(engine, 'b');
  const worker = await Worker.of(engine, 'c');
  await worker.report(failed(await worker.takeOne(), { permanent: true }));
  await worker.leave();
  await engine.addColumns('a');
  await engine.define({ ...definition, stages: chain(['a', 'b', 'c']) });
  await engine.queue('c', [id as string]);
  for (const stage of ['a', 'b', 'c']) await runStage(engine, stage);
  const begun = await engine.rows(
    `select s.name, count(*)::int from millrace.attempts a join millrace.stages s on s.id = a.stage_id
     where a.run_id = $1 group by s.name order by s.name`,
    [(await engine.run(id)).id],
  );
  expect(begun).toEqual(['a', 'b', 'c'].map((name) => ({ name, count: 1 })));
  expect((await engine.run(id)).status).toBe('completed');
});

test('a map does not wait before its last chunk has closed the total', async ({ engine }) => {
  const { folder, spawner } = await spawningFolder(engine);
  const early = () => spawner.worker.complete([waiting(spawner.item, String(spawner.fanOut), 'children')]);
  const rejected = { verdict: 'rejected', reason: expect.stringContaining('p_last') };
  expect((await early()).items).toMatchObject([rejected]);
  await spawner.spawn(numbers(1, 2));
  expect((await early()).items).toMatchObject([rejected]);
  await spawner.spawn([], true);
  expect(await spawner.wait()).toMatchObject({ verdict: 'accepted' });
  await endFiles(engine);
  expect(await collected(engine, folder)).toBe('completed');
});

test('“all” does not hold on a predecessor’s total while the successor’s last chunk is still to come', async ({
  engine,
}) => {
  await defineFamily(engine, {
    split: { max_workers: 9, lease_seconds: 30 },
    beside: [{ name: 'index', after: [{ map: 'split', stage: 'scan', all: true }] }],
  });
  const folder = (await startFolders(engine))[0] as string;
  await (await Spawner.of(engine)).spawn(numbers(1, 2), true);
  await engine.advance('2 minutes');
  await sweep(engine);
  await engine.advance('10 minutes');
  const successor = await Spawner.of(engine);
  expect(await successor.spawn(numbers(1, 4))).toMatchObject({ spawned: 4, total: null });
  await runFiles(engine, 'scan', [1, 2, 3, 4]);
  expect(await collected(engine, folder, 'index')).toBe('pending');
  expect(await successor.spawn(numbers(5, 6), true)).toMatchObject({ total: 6 });
  await successor.wait();
  await runFiles(engine, 'scan', [5, 6]);
  expect(await collected(engine, folder, 'index')).toBe('queued');
});

test('children that their parent has given up are not retried without it', async ({ engine }) => {
  const { folder, fanOut } = await waitingFolder(engine, 3);
  await failFiles(engine, [1]);
  await collectChildren(engine);
  await sweep(engine);
  expect(await engine.rows(`select from millrace.dead_letters where pipeline = 'files' and can_retry`)).toEqual([]);
  expect(await childStatuses(engine, fanOut)).toEqual({ cancelled: 2, failed: 1 });
  expect((await folderRun(engine, folder)).status).toBe('failed');
});

test('a stage that depends on a skipped map by a threshold alone is skipped with it', async ({ engine }) => {
  await defineFamily(engine, {
    split: { when: '$.entity.label == "no such label"', otherwise: 'skip_dependents' },
    beside: [
      { name: 'early', after: [{ map: 'split', stage: 'scan', count: 1 }] },
      { name: 'publish', needs: ['split'] },
    ],
  });
  const folder = (await startFolders(engine))[0] as string;
  for (const stage of ['split', 'early', 'publish'])
    expect(await stageAttempts(engine, folder, stage)).toEqual(['1 skipped']);
});

test('retention leaves a parent whose late children still run, and these go on', async ({ engine }) => {
  const decision = { deadline_seconds: 31_536_000 };
  const { fanOut } = await leftFolder(engine, 2, {
    files: [{ name: 'scan' }, { name: 'blend', needs: ['scan'], kind: 'manual', decision }],
  });
  await runFiles(engine, 'scan');
  const asked = await engine.value('select min(attempt_id) from public.millrace_decisions');
  await engine.sql.query(`select public.millrace_decide($1, '1')`, [asked]);
  await collectChildren(engine);
  await runStage(engine, 'publish', 'folder');
  await engine.advance('100 days');
  await engine.sql.query('select millrace.prune()');
  await sweep(engine);
  expect(await childStatuses(engine, fanOut)).toMatchObject({ running: 1 });
});

test('a key that is no value of its column’s type is refused, by spawn and by start', async ({ engine }) => {
  await engine.sql.query('create table public.books_by_uuid (id uuid primary key default gen_random_uuid())');
  await engine.pipeline(chain(['scan']), { table: 'public.books_by_uuid', projection: 'none' }, 'files');
  const split = { name: 'split', kind: 'map', child: { pipeline: 'files' } };
  await engine.pipeline([split], { table: 'public.folders' }, 'folder');
  await startFolders(engine);
  const spawner = await Spawner.of(engine);
  const refused = {
    code: 'MR002',
    message: expect.stringMatching(/books_by_uuid.*"not a uuid"/),
    hint: expect.stringContaining('id'),
  };
  await expect(spawner.spawn([{ key: 'not a uuid' }], true)).rejects.toMatchObject(refused);
  expect(await engine.refusal(`select millrace.start('files', 'not a uuid')`)).toMatchObject(refused);
});

test.for([
  'skip($1, null)',
  'start_stage($1, null)',
  `complete_stage($1, null, '{}')`,
  `fail_stage($1, null, 'it broke')`,
  'reset_children($1, null)',
])('millrace.%s is refused, for it names no stage', async (call, { engine }) => {
  await engine.pipeline(chain(['a', 'b']));
  const [id] = await engine.queued('a');
  const run = (await engine.run(id)).id;
  expect(await engine.refusal(`select millrace.${call}`, [run])).toMatchObject({
    code: 'MR002',
    message: expect.stringMatching(/^stage is missing, but \w+ needs it$/),
    hint: expect.any(String),
  });
  expect(await engine.attempts(id)).toEqual(['a 1 queued']);
});

test('a model that counts tokens in fractions leaves the log of agents readable', async ({ engine }) => {
  await engine.pipeline([{ name: 'think', kind: 'agent', agent: {} }]);
  await engine.queued('think');
  const worker = await Worker.of(engine, 'think');
  const item = await worker.takeOne();
  const usage = { input_tokens: 1.5, output_tokens: 2, cost_usd: 0.5 };
  const turns = JSON.stringify([{ seq: 1, kind: 'model', content: { output: [] }, usage }]);
  const values = [worker.id, item.attempt, item.token, turns];
  await worker.client.query('select public.millrace_checkpoint($1, $2, $3, $4)', values);
  expect(await engine.rows('select tokens::float from millrace.agent_log')).toEqual([{ tokens: 3.5 }]);
});
