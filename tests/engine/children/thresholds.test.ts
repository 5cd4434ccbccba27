import { expect } from 'vitest';
import {
  collectChildren,
  collected,
  defineFamily,
  endFiles,
  failFiles,
  fileRun,
  folderRun,
  folderStatuses,
  leftFolder,
  numbers,
  runFiles,
  spawnAll,
  spawningFolder,
  stageAttempts,
  startFolders,
  sweep,
  waitingFolder,
} from '../../support/engine/children.ts';
import { type Engine, type Row, type StageDefinition, test } from '../../support/engine.ts';
import { runStage } from '../../support/worker.ts';

/** A stage of the parent that begins after a threshold on the children's scan. */
const peek = (rule: Row, more: Row = {}): StageDefinition => ({
  name: 'peek',
  after: [{ map: 'split', stage: 'scan', ...rule }],
  ...more,
});

/** A folder whose files all run, with the stage peek under this threshold. */
const peeking = (engine: Engine, count: number, rule: Row, split: Row = {}) =>
  waitingFolder(engine, count, { beside: [peek(rule)], split });

test('count: the stage begins once so many children have done the stage, while others still run', async ({
  engine,
}) => {
  const { folder } = await peeking(engine, 5, { count: 3 });
  await runFiles(engine, 'scan', [5, 2]);
  expect(await collected(engine, folder, 'peek')).toBe('pending');
  await runFiles(engine, 'scan', [4]);
  const { wake } = await collectChildren(engine);
  expect(wake).toEqual([{ pipeline: 'folder', stage: 'peek', function: 'folder-peek' }]);
  expect(await stageAttempts(engine, folder, 'split')).toEqual(['1 waiting']);
  await runStage(engine, 'peek', 'folder');
  expect(await folderStatuses(engine, folder)).toEqual({ split: 'started', peek: 'completed' });
});

test('count: another stage of the children does not count', async ({ engine }) => {
  const beside = [{ name: 'peek', after: [{ map: 'split', stage: 'blend', count: 2 }] }];
  const { folder } = await waitingFolder(engine, 3, { beside });
  await runFiles(engine, 'scan');
  await runFiles(engine, 'blend', [1]);
  expect(await collected(engine, folder, 'peek')).toBe('pending');
  await runFiles(engine, 'blend', [3]);
  expect(await collected(engine, folder, 'peek')).toBe('queued');
});

test('count: it may hold while the parent still spawns', async ({ engine }) => {
  const { folder, spawner } = await spawningFolder(engine, { beside: [peek({ count: 2 })] });
  await spawner.spawn(numbers(1, 2));
  await runFiles(engine, 'scan');
  expect(await collected(engine, folder as string, 'peek')).toBe('queued');
  await spawner.spawn(numbers(3, 3), true);
  await spawner.wait();
});

test('count: fewer children than asked for are enough once each has done the stage or is over', async ({ engine }) => {
  const { folder } = await peeking(engine, 3, { count: 20 }, { fan_in: { failed_children: 'ignore' } });
  await runFiles(engine, 'scan', [1]);
  await failFiles(engine, [2]);
  expect(await collected(engine, folder, 'peek')).toBe('pending');
  await runFiles(engine, 'scan', [3]);
  expect(await collected(engine, folder, 'peek')).toBe('queued');
});

test('consecutive: numbers done out of order count once there is no gap before them', async ({ engine }) => {
  const { folder } = await peeking(engine, 6, { consecutive: 3 });
  await runFiles(engine, 'scan', [2, 3, 4, 5]);
  expect(await collected(engine, folder, 'peek')).toBe('pending');
  await runFiles(engine, 'scan', [1]);
  expect(await collected(engine, folder, 'peek')).toBe('queued');
});

test('consecutive: a gap is a gap, though the number after it is done', async ({ engine }) => {
  const { folder } = await peeking(engine, 5, { consecutive: 3 });
  await runFiles(engine, 'scan', [1, 2, 4]);
  expect(await collected(engine, folder, 'peek')).toBe('pending');
  await runFiles(engine, 'scan', [3]);
  expect(await collected(engine, folder, 'peek')).toBe('queued');
});

test('consecutive: it counts from the smallest number, whatever that is', async ({ engine }) => {
  await defineFamily(engine, { beside: [peek({ consecutive: 2 })] });
  const [folder] = await startFolders(engine);
  await spawnAll(engine, numbers(37, 40));
  await runFiles(engine, 'scan', [38, 39]);
  expect(await collected(engine, folder as string, 'peek')).toBe('pending');
  await runFiles(engine, 'scan', [37]);
  expect(await collected(engine, folder as string, 'peek')).toBe('queued');
});

test('consecutive: no number counts as the smallest before the last chunk has come', async ({ engine }) => {
  const { folder, spawner } = await spawningFolder(engine, { beside: [peek({ consecutive: 2 })] });
  await spawner.spawn(numbers(11, 13));
  await runFiles(engine, 'scan');
  expect(await collected(engine, folder, 'peek')).toBe('pending');
  await spawner.spawn(numbers(1, 3), true);
  await spawner.wait();
  expect(await collected(engine, folder, 'peek')).toBe('pending');
  await runFiles(engine, 'scan', [1, 2]);
  expect(await collected(engine, folder, 'peek')).toBe('queued');
});

test('consecutive: fewer children than asked for, or a gap that never closes, are met by all of them', async ({
  engine,
}) => {
  const { folder } = await peeking(engine, 4, { consecutive: 3 }, { fan_in: { failed_children: 'ignore' } });
  await failFiles(engine, [2]);
  await runFiles(engine, 'scan', [1, 3]);
  expect(await collected(engine, folder, 'peek')).toBe('pending');
  await runFiles(engine, 'scan', [4]);
  expect(await collected(engine, folder, 'peek')).toBe('queued');
});

test('consecutive: keys that are no numbers are refused with the remedy', async ({ engine }) => {
  const { spawner } = await spawningFolder(engine, { beside: [peek({ consecutive: 2 })] });
  for (const key of ['xii', '07', '1.5', -1, '1234567890']) {
    expect(await engine.refusal(...spawner.chunk([{ key: 1 }, { key }]))).toMatchObject({
      code: 'MR002',
      message: `an item has the key ${key}, but a threshold counts consecutive numbers`,
      hint: expect.stringContaining('count'),
    });
  }
});

test('the threshold all holds when every child has done the stage, whatever comes after it', async ({ engine }) => {
  const { folder } = await peeking(engine, 3, { all: true });
  await runFiles(engine, 'scan', [1, 3]);
  expect(await collected(engine, folder, 'peek')).toBe('pending');
  await runFiles(engine, 'scan', [2]);
  expect(await collected(engine, folder, 'peek')).toBe('queued');
  expect(await stageAttempts(engine, folder, 'split')).toEqual(['1 waiting']);
});

test('the threshold all does not count a child that failed after the stage for one that has not done it', async ({
  engine,
}) => {
  const { folder } = await peeking(engine, 3, { all: true }, { fan_in: { failed_children: 'ignore' } });
  await runFiles(engine, 'scan', [1, 2]);
  await failFiles(engine, [1], 'blend');
  expect(await collected(engine, folder, 'peek')).toBe('pending');
  await failFiles(engine, [3]);
  expect(await collected(engine, folder, 'peek')).toBe('queued');
});

test('the threshold all holds where there are no children', async ({ engine }) => {
  const { folder } = await peeking(engine, 0, { all: true });
  expect(await collected(engine, folder, 'peek')).toBe('queued');
});

test('a child that skips the stage, or goes on without it, has done it', async ({ engine }) => {
  const files = [
    { name: 'look' },
    { name: 'scan', needs: ['look'], when: '$.needs.look.file != "1"', on_failure: 'continue' },
    { name: 'blend', needs: ['scan'] },
  ];
  const { folder } = await waitingFolder(engine, 3, { files, beside: [peek({ consecutive: 2 })] });
  await runFiles(engine, 'look', [1, 2]);
  expect(await collected(engine, folder, 'peek')).toBe('pending');
  await failFiles(engine, [2]);
  expect(await collected(engine, folder, 'peek')).toBe('queued');
});

test('needs and thresholds must both hold, whichever comes first', async ({ engine }) => {
  const beside = [{ name: 'cover' }, peek({ count: 1 }, { needs: ['cover'] })];
  await defineFamily(engine, { beside });
  const [early, late] = (await startFolders(engine, 2)) as [string, string];
  const first = await spawnAll(engine, numbers(1, 2));
  await spawnAll(engine, numbers(1, 2));
  const parent = await engine.value<string>(
    'select r.entity_id from millrace.fan_outs f join millrace.runs r on r.id = f.run_id where f.id = $1',
    [first],
  );
  expect(parent).toBe(early);
  await runFiles(engine, 'scan');
  await collectChildren(engine, [first]);
  expect(await folderStatuses(engine, early)).toMatchObject({ cover: 'queued', peek: 'pending' });
  await runStage(engine, 'cover', 'folder');
  expect(await folderStatuses(engine, early)).toMatchObject({ peek: 'queued' });
  expect(await folderStatuses(engine, late)).toMatchObject({ cover: 'completed', peek: 'pending' });
  expect(await collected(engine, late, 'peek')).toBe('queued');
});

test('several thresholds must all hold', async ({ engine }) => {
  const after = [
    { map: 'split', stage: 'scan', count: 3 },
    { map: 'split', stage: 'blend', consecutive: 2 },
  ];
  const { folder } = await waitingFolder(engine, 4, { beside: [{ name: 'peek', after }] });
  await endFiles(engine, [1, 2]);
  expect(await collected(engine, folder, 'peek')).toBe('pending');
  await runFiles(engine, 'scan', [4]);
  expect(await collected(engine, folder, 'peek')).toBe('queued');
});

test('thresholds cascade: each stage begins at its own, in one collection', async ({ engine }) => {
  const beside = [peek({ count: 1 }), { name: 'leaf', after: [{ map: 'split', stage: 'scan', consecutive: 3 }] }];
  const { folder } = await waitingFolder(engine, 4, { beside });
  await runFiles(engine, 'scan', [1, 2, 3]);
  await collectChildren(engine);
  expect(await folderStatuses(engine, folder)).toEqual({ split: 'started', peek: 'queued', leaf: 'queued' });
});

test('a stage begins once, however many collects and sweeps come after its threshold', async ({ engine }) => {
  const { folder, fanOut } = await peeking(engine, 8, { count: 2 });
  await runFiles(engine, 'scan', [1, 2, 3]);
  const sessions = await Promise.all(Array.from({ length: 4 }, () => engine.database.connect('service_role')));
  await Promise.all(sessions.map((session) => collectChildren(engine, [fanOut], session)));
  await runFiles(engine, 'scan', [4, 5]);
  await Promise.all([...sessions.map((session) => collectChildren(engine, [fanOut], session)), sweep(engine)]);
  await runStage(engine, 'peek', 'folder');
  await runFiles(engine, 'scan');
  await collectChildren(engine);
  await sweep(engine);
  expect(await stageAttempts(engine, folder, 'peek')).toEqual(['1 completed']);
});

test('a stage that has begun is not undone by a child that starts over, and does not begin again', async ({
  engine,
}) => {
  const { folder, fanOut } = await peeking(engine, 3, { count: 2 });
  await runFiles(engine, 'scan', [1, 2]);
  expect(await collected(engine, folder, 'peek')).toBe('queued');
  const child = await fileRun(engine, fanOut, 1);
  await engine.sql.query(`update public.items set scan_status = 'queued' where id = $1`, [child.entity_id]);
  expect(await collected(engine, folder, 'peek')).toBe('queued');
  expect(await engine.value('select done from millrace.fan_progress')).toBe(1);
  await runFiles(engine, 'scan');
  expect(await collected(engine, folder, 'peek')).toBe('queued');
  expect(await stageAttempts(engine, folder, 'peek')).toEqual(['1 queued']);
});

test('a child that starts over before the threshold is taken off the count', async ({ engine }) => {
  const { folder, fanOut } = await peeking(engine, 3, { count: 2 });
  await runFiles(engine, 'scan', [1]);
  expect(await collected(engine, folder, 'peek')).toBe('pending');
  const child = await fileRun(engine, fanOut, 1);
  await engine.sql.query(`update public.items set scan_status = 'queued' where id = $1`, [child.entity_id]);
  await runFiles(engine, 'scan', [2]);
  expect(await collected(engine, folder, 'peek')).toBe('pending');
  await runFiles(engine, 'scan', [1]);
  expect(await collected(engine, folder, 'peek')).toBe('queued');
});

test('nor does a live child whose stage is reset count twice once it has done it again', async ({ engine }) => {
  const { folder, fanOut } = await peeking(engine, 3, { count: 2 });
  await runFiles(engine, 'scan', [1]);
  await collectChildren(engine);
  await engine.sql.query(`select millrace.reset($1, 'scan')`, [(await fileRun(engine, fanOut, 1)).id]);
  await runFiles(engine, 'scan', [1]);
  expect(await collected(engine, folder, 'peek')).toBe('pending');
  expect(await engine.value('select done from millrace.fan_progress')).toBe(1);
  await runFiles(engine, 'scan', [2]);
  expect(await collected(engine, folder, 'peek')).toBe('queued');
});

test('the first count of a stage may be a recount', async ({ engine }) => {
  const { folder, fanOut } = await peeking(engine, 3, { consecutive: 2 }, { fan_in: { failed_children: 'ignore' } });
  await failFiles(engine, [3]);
  await engine.sql.query('select millrace.retry($1)', [(await fileRun(engine, fanOut, 3)).id]);
  await runFiles(engine, 'scan', [1, 2]);
  expect(await collected(engine, folder, 'peek')).toBe('queued');
});

test('a map that its worker has completed satisfies every threshold on it', async ({ engine }) => {
  const beside = [
    peek({ all: true }),
    { name: 'late', needs: ['cover'], after: [{ map: 'split', stage: 'blend', consecutive: 4 }] },
    { name: 'cover' },
  ];
  const { folder } = await leftFolder(engine, 5, { beside });
  await endFiles(engine, [4, 5]);
  await collectChildren(engine);
  expect(await folderStatuses(engine, folder)).toMatchObject({ split: 'completed', peek: 'queued', late: 'pending' });
  await runStage(engine, 'cover', 'folder');
  expect(await folderStatuses(engine, folder)).toMatchObject({ late: 'queued' });
});

test('a map that was skipped, or that the run goes on without, satisfies every threshold on it', async ({ engine }) => {
  const split = { when: '$.entity.label == "folder 1"', on_failure: 'continue' };
  await defineFamily(engine, { beside: [peek({ count: 2 })], split });
  const [failing, skipping] = (await startFolders(engine, 2)) as [string, string];
  expect(await folderStatuses(engine, skipping)).toEqual({ split: 'skipped', peek: 'queued' });
  await spawnAll(engine, numbers(1, 3));
  await failFiles(engine, [1]);
  await collectChildren(engine);
  expect(await folderStatuses(engine, failing)).toEqual({ split: 'failed', peek: 'queued' });
});

test('a threshold may begin a stage under a condition, which its skipping cascades from', async ({ engine }) => {
  const beside = [peek({ count: 1 }, { when: '$.entity.label == "nothing"' }), { name: 'index', needs: ['peek'] }];
  const { folder } = await waitingFolder(engine, 2, { beside });
  await runFiles(engine, 'scan', [1]);
  await collectChildren(engine);
  expect(await folderStatuses(engine, folder)).toEqual({ split: 'started', peek: 'skipped', index: 'queued' });
});

test('a map that starts over takes the stages after its thresholds with it', async ({ engine }) => {
  const { folder } = await peeking(engine, 3, { count: 1 });
  await runFiles(engine, 'scan', [1]);
  expect(await collected(engine, folder, 'peek')).toBe('queued');
  await runStage(engine, 'peek', 'folder');
  await engine.sql.query(`update public.folders set split_status = 'queued'`);
  expect(await folderStatuses(engine, folder)).toEqual({ split: 'queued', peek: 'pending' });
  await spawnAll(engine, numbers(1, 3));
  expect(await collected(engine, folder, 'peek')).toBe('pending');
  await endFiles(engine, [2]);
  expect(await collected(engine, folder, 'peek')).toBe('queued');
  expect(await stageAttempts(engine, folder, 'peek')).toEqual(['1 completed superseded', '2 queued']);
});

test('the run ends when the map and what came after its thresholds have ended', async ({ engine }) => {
  const { folder } = await peeking(engine, 2, { count: 1 });
  await endFiles(engine);
  await collectChildren(engine);
  expect((await folderRun(engine, folder)).status).toBe('running');
  await runStage(engine, 'peek', 'folder');
  expect((await folderRun(engine, folder)).status).toBe('completed');
});

const refused: [string, unknown, RegExp][] = [
  ['a stage that is no map', [{ map: 'cover', stage: 'scan', count: 1 }], /after\.0\.map names cover/],
  [
    'an unknown stage of the children',
    [{ map: 'split', stage: 'bake', count: 1 }],
    /after names the stage "bake" of pipeline files/,
  ],
  ['two rules', [{ map: 'split', stage: 'scan', count: 1, all: true }], /one of count, consecutive and all/],
  ['no rule', [{ map: 'split', stage: 'scan' }], /one of count, consecutive and all/],
  ['a count of none', [{ map: 'split', stage: 'scan', count: 0 }], /after\.0\.count is 0/],
  ['a part of a child', [{ map: 'split', stage: 'scan', consecutive: 1.5 }], /after\.0\.consecutive is 1\.5/],
  ['a word', ['split'], /after\.0 is "split", but must be a threshold/],
  ['what nobody reads', [{ map: 'split', stage: 'scan', count: 1, of: 2 }], /after\.0 has the unknown option of/],
  ['itself', [{ map: 'split', stage: 'scan', count: 1 }], /cycle/],
];
for (const [what, after, message] of refused) {
  test(`a threshold on ${what} is refused when it is defined`, async ({ engine }) => {
    const split = what === 'itself' ? { needs: ['peek'] } : {};
    await expect(
      defineFamily(engine, { split, beside: [{ name: 'cover' }, { name: 'peek', after }] }),
    ).rejects.toMatchObject({
      code: 'MR001',
      message: expect.stringMatching(message),
      hint: expect.any(String),
    });
  });
}
