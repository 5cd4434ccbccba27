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
  leftFolder,
  numbers,
  Spawner,
  spawnAll,
  spawningFolder,
  stageAttempts,
  startFolders,
  sweep,
  waitingFolder,
} from '../../support/engine/children.ts';
import { chain, type Row, test } from '../../support/engine.ts';
import { openTransaction } from '../../support/sessions.ts';
import { completed, runStage, Worker } from '../../support/worker.ts';

test('chunks add up, rows are made by the insert function, and each child is woken once', async ({ engine }) => {
  const { folder, spawner } = await spawningFolder(engine);
  expect(await spawner.spawn(numbers(1, 3))).toMatchObject({ status: 'spawned', spawned: 3, total: null, busy: [] });
  const answer = await spawner.spawn(numbers(4, 5));
  expect(answer).toMatchObject({ status: 'spawned', spawned: 5, total: null, wake: [] });
  expect(await engine.rows('select number from public.items where folder = $1 order by id', [folder])).toHaveLength(5);
  expect(await childStatuses(engine, spawner.fanOut)).toEqual({ running: 5 });
  expect(await engine.item('1')).toMatchObject({ scan_status: 'queued', blend_status: 'pending' });
});

test('the first chunk names the stages of the children to wake', async ({ engine }) => {
  const { spawner } = await spawningFolder(engine);
  const { wake } = await spawner.spawn(numbers(1, 2));
  expect(wake).toEqual([{ pipeline: 'files', stage: 'scan', function: 'files-scan' }]);
});

test("children share the parent's trace and begin at every first stage of their pipeline", async ({ engine }) => {
  const files = [{ name: 'scan' }, { name: 'weigh' }, { name: 'blend', needs: ['scan', 'weigh'] }];
  const { fanOut } = await waitingFolder(engine, 2, { files });
  expect(await engine.value('select count(distinct trace_id)::int from millrace.runs')).toBe(1);
  const child = await fileRun(engine, fanOut, 2);
  expect(await engine.statuses(child.entity_id)).toEqual({ scan: 'queued', weigh: 'queued', blend: 'pending' });
});

test('a chunk that is sent twice spawns once, also after its children have ended', async ({ engine }) => {
  const { spawner } = await spawningFolder(engine);
  await spawner.spawn(numbers(1, 3));
  await endFiles(engine);
  expect(await spawner.spawn(numbers(1, 3), true)).toMatchObject({ status: 'spawned', spawned: 3, total: 3, wake: [] });
  expect(await childStatuses(engine, spawner.fanOut)).toEqual({ completed: 3 });
});

test('the total closes with the last chunk, and "all" cannot hold before', async ({ engine }) => {
  const { folder, spawner } = await spawningFolder(engine);
  await spawner.spawn(numbers(1, 2));
  await endFiles(engine);
  await collectChildren(engine);
  expect(await stageAttempts(engine, folder, 'split')).toEqual(['1 started']);
  await spawner.spawn(numbers(3, 4), true);
  await collectChildren(engine);
  const { verdict, collectChildren: toCollect } = await spawner.wait();
  expect([verdict, toCollect]).toEqual(['accepted', [spawner.fanOut]]);
  await collectChildren(engine);
  expect(await stageAttempts(engine, folder, 'split')).toEqual(['1 waiting']);
  await endFiles(engine);
  await collectChildren(engine);
  expect(await folderStatuses(engine, folder)).toEqual({ split: 'completed', publish: 'queued' });
});

test('children that all ended while their parent still spawned are found when it begins to wait', async ({
  engine,
}) => {
  const { folder, spawner } = await spawningFolder(engine);
  await spawner.spawn(numbers(1, 2), true);
  await endFiles(engine);
  await collectChildren(engine);
  expect(await engine.value('select count(*)::int from millrace.child_tallies')).toBe(0);
  await collectChildren(engine, (await spawner.wait()).collectChildren);
  expect(await folderStatuses(engine, folder)).toMatchObject({ split: 'completed' });
});

test('no items at all complete the stage at once', async ({ engine }) => {
  const { folder } = await waitingFolder(engine, 0);
  await collectChildren(engine);
  expect(await folderStatuses(engine, folder)).toEqual({ split: 'completed', publish: 'queued' });
  expect(await engine.value('select split_result from public.folders')).toMatchObject({ total: 0, completed: 0 });
});

test('an empty last chunk closes the total', async ({ engine }) => {
  const { spawner } = await spawningFolder(engine);
  await spawner.spawn(numbers(1, 2));
  expect(await spawner.spawn([], true)).toMatchObject({ spawned: 2, total: 2 });
});

test('the successor of a worker that died between spawning and waiting takes its children over', async ({ engine }) => {
  const { folder, spawner: lost } = await spawningFolder(engine);
  await lost.spawn(numbers(1, 3), true);
  await endFiles(engine, [1]);
  await engine.advance('2 minutes');
  await sweep(engine);
  await engine.advance('2 minutes');
  expect(await lost.spawn(numbers(4, 4))).toMatchObject({ status: 'stale', reason: expect.stringContaining('lease') });
  const next = await Spawner.of(engine);
  expect(await next.spawn(numbers(1, 3), true)).toMatchObject({ fan_out: lost.fanOut, spawned: 3, total: 3, wake: [] });
  await next.wait();
  await endFiles(engine, [2, 3]);
  await collectChildren(engine);
  expect(await stageAttempts(engine, folder, 'split')).toEqual(['1 failed', '2 completed']);
  expect(await engine.value('select count(*)::int from public.items')).toBe(3);
});

test('after a lost lease the children that failed meanwhile are not retried: nobody asked for it', async ({
  engine,
}) => {
  const { spawner: lost } = await spawningFolder(engine, { split: { fan_in: { failed_children: 'ignore' } } });
  await lost.spawn(numbers(1, 2), true);
  await failFiles(engine, [1]);
  await engine.advance('2 minutes');
  await sweep(engine);
  await engine.advance('2 minutes');
  await spawnAll(engine, numbers(1, 2));
  expect(await childStatuses(engine, lost.fanOut)).toEqual({ failed: 1, running: 1 });
});

test('children that end while nobody holds their parent are kept for the successor', async ({ engine }) => {
  const { folder, spawner: lost } = await spawningFolder(engine);
  await lost.spawn(numbers(1, 2), true);
  await engine.advance('2 minutes');
  await sweep(engine);
  await endFiles(engine);
  expect(await collected(engine, folder)).toBe('queued');
  await engine.advance('2 minutes');
  await spawnAll(engine, numbers(1, 2));
  expect(await collected(engine, folder)).toBe('completed');
});

test('a token that is not the current one spawns nothing', async ({ engine }) => {
  const { spawner } = await spawningFolder(engine);
  const answer = await spawner.spawn(numbers(1, 1), true, '00000000-0000-4000-8000-000000000000');
  expect(answer).toMatchObject({ status: 'stale', reason: expect.stringContaining('token') });
  await engine.sql.query('select millrace.cancel($1)', [spawner.item.run]);
  expect(await spawner.spawn(numbers(1, 1))).toMatchObject({ status: 'stale', reason: 'the attempt was cancelled' });
  await engine.sql.query('delete from public.folders');
  expect(await spawner.spawn(numbers(1, 1))).toMatchObject({
    status: 'stale',
    reason: expect.stringContaining('no such attempt'),
  });
  expect(await engine.value('select count(*)::int from public.items')).toBe(0);
});

test('only a map stage spawns', async ({ engine }) => {
  await defineFamily(engine, { beside: [{ name: 'publish', needs: ['split'] }, { name: 'print' }] });
  await startFolders(engine);
  const spawner = await Spawner.of(engine, 'print');
  expect(await engine.refusal(...spawner.chunk(numbers(1, 1)))).toMatchObject({
    code: 'MR004',
    message: expect.stringContaining('stage print, which is no map'),
    hint: expect.stringContaining('map'),
  });
});

const bad: [string, unknown, RegExp][] = [
  ['items that are no list', { key: 1 }, /p_items is object/],
  ['more than 5000 items', numbers(1, 5001), /5001 items/],
  ['an item that is no object', [7], /key null/],
  ['an item without a key', [{ label: 'x' }], /key null/],
  ['an empty key', [{ key: '' }], /key ""/],
  ['a key that is no text', [{ key: ['x'] }], /key \["x"\]/],
  ['a key that is too long', [{ key: 'x'.repeat(201) }], /key "xxx/],
];
for (const [what, items, message] of bad) {
  test(`${what} is refused with the remedy`, async ({ engine }) => {
    const { spawner } = await spawningFolder(engine);
    expect(await engine.refusal(...spawner.chunk(items))).toMatchObject({
      code: 'MR002',
      message: expect.stringMatching(message),
      hint: expect.any(String),
    });
  });
}

test('a chunk that does not say whether it is the last is refused', async ({ engine }) => {
  const { spawner } = await spawningFolder(engine);
  const refusal = await engine.refusal(...spawner.chunk([], null));
  expect(refusal).toMatchObject({ code: 'MR002', message: expect.stringContaining('p_last is null') });
});

test('the 100,001st child is refused, and with it its whole chunk', async ({ engine }) => {
  const { spawner } = await spawningFolder(engine);
  await spawner.spawn(numbers(1, 1));
  await engine.sql.query('update millrace.fan_outs set spawned = 99998');
  expect(await engine.refusal(...spawner.chunk(numbers(2, 4)))).toMatchObject({
    code: 'MR002',
    message: 'the fan-out has 100001 children, but one may have at most 100000',
  });
  expect(await spawner.spawn(numbers(2, 3))).toMatchObject({ status: 'spawned', spawned: 100_000 });
  await engine.sql.query('update millrace.fan_outs set spawned = 3');
});

test('a row that somebody holds is named as busy, keeps the total open, and is spawned when sent again', async ({
  engine,
}) => {
  await defineFamily(engine);
  const folder = (await startFolders(engine))[0] as string;
  await engine.sql.query(`insert into public.items (folder, number) values ($1, '2')`, [folder]);
  const user = await openTransaction(engine);
  await user.query(`update public.items set label = 'mine' where number = '2'`);
  const spawner = await Spawner.of(engine);
  expect(await spawner.spawn(numbers(1, 3), true)).toMatchObject({
    status: 'busy',
    busy: ['2'],
    spawned: 2,
    total: null,
  });
  await user.query('commit');
  expect(await spawner.spawn(numbers(2, 2), true)).toMatchObject({ status: 'spawned', busy: [], spawned: 3, total: 3 });
  expect(await childStatuses(engine, spawner.fanOut)).toEqual({ running: 3 });
});

test('a parent whose run somebody holds is busy, and nothing waits', async ({ engine }) => {
  const { folder, spawner } = await spawningFolder(engine);
  const person = await openTransaction(engine);
  await person.query('select millrace.cancel($1)', [(await folderRun(engine, folder)).id]);
  expect(await spawner.spawn(numbers(1, 1))).toMatchObject({ status: 'busy', reason: expect.stringContaining('run') });
  await person.query('rollback');
  expect(await spawner.spawn(numbers(1, 1))).toMatchObject({ status: 'spawned' });
});

const plain = { split: { child: { pipeline: 'files' } } };

test("without an insert function the key is the row's id", async ({ engine }) => {
  const { spawner } = await spawningFolder(engine, plain);
  await engine.insert(2);
  expect(await spawner.spawn([{ key: 1 }, { key: '2' }], true)).toMatchObject({ spawned: 2, total: 2 });
  expect(await fileRun(engine, spawner.fanOut, 2)).toMatchObject({ entity_id: '2' });
});

test('a fan-out goes on with the pipeline that it began with', async ({ engine }) => {
  const { folder, spawner } = await spawningFolder(engine, plain);
  await engine.insert(2);
  await spawner.spawn([{ key: 1 }]);
  const run = (await folderRun(engine, folder)).id;
  await engine.sql.query('select millrace.cancel($1)', [run]);
  await sweep(engine);
  await spawner.worker.leave(true);
  await engine.pipeline(chain(['look']), { projection: 'none' }, 'others');
  await defineFamily(engine, { split: { child: { pipeline: 'others' } } });
  await engine.sql.query('select millrace.retry($1)', [run]);
  expect(await spawnAll(engine, [{ key: 1 }, { key: 2 }])).toBe(spawner.fanOut);
  expect(
    await engine.rows(
      'select distinct p.name from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id where r.fan_out_id = $1',
      [spawner.fanOut],
    ),
  ).toEqual([{ name: 'files' }]);
});

test('rows that do not exist, or are spelt otherwise, are refused', async ({ engine }) => {
  const { spawner } = await spawningFolder(engine, plain);
  await engine.insert(1);
  expect(await engine.refusal(...spawner.chunk([{ key: 1 }, { key: 77 }]))).toMatchObject({
    code: 'MR003',
    message: 'table public.items has no row 77 for item 77',
    hint: expect.stringContaining('insert function'),
  });
  expect(await engine.refusal(...spawner.chunk([{ key: '01' }]))).toMatchObject({
    code: 'MR003',
    message: 'table public.items has no row 01 for item 01',
    hint: expect.stringContaining('spell their keys as the table does'),
  });
  expect(await spawner.spawn([{ key: 1 }])).toMatchObject({ spawned: 1 });
});

const answers: [string, string, RegExp][] = [
  [
    'answers too little',
    `select '1'::text, '1'::text`,
    /insert_files does not give each item a row of its own: item 2 is missing/,
  ],
  ['answers a null row', `values ('1', '1'), ('2', null)`, /item 2 has no entity_id/],
  ['answers what nobody asked for', `values ('1', '1'), ('2', '2'), ('9', '2')`, /item 9 was not asked for/],
  ['gives two items one row', `values ('1', '1'), ('2', '1')`, /the items 1 and 2 have the same row, 1/],
];
for (const [what, query, message] of answers) {
  test(`an insert function that ${what} is refused`, async ({ engine }) => {
    const { spawner } = await spawningFolder(engine);
    await engine.insert(2);
    await engine.sql.query(
      `create or replace function public.insert_files(p_parent text, p_items jsonb) returns table (item_key text, entity_id text) language sql as $$ ${query} $$`,
    );
    expect(await engine.refusal(...spawner.chunk(numbers(1, 2)))).toMatchObject({
      code: 'MR004',
      message: expect.stringMatching(message),
      hint: expect.any(String),
    });
    expect(await engine.value('select count(*)::int from millrace.fan_outs')).toBe(0);
  });
}

test('an insert function that gives a later item the row of an earlier one is refused', async ({ engine }) => {
  const { spawner } = await spawningFolder(engine);
  await engine.insert(1);
  await engine.sql.query(
    `create or replace function public.insert_files(p_parent text, p_items jsonb) returns table (item_key text, entity_id text) language sql as $$ select n ->> 'key', '1' from jsonb_array_elements(p_items) n $$`,
  );
  await spawner.spawn(numbers(1, 1));
  await runStage(engine, 'scan', 'files');
  await runStage(engine, 'blend', 'files');
  expect(await engine.refusal(...spawner.chunk(numbers(2, 2)))).toMatchObject({
    code: 'MR004',
    message: expect.stringContaining('the items 1 and 2 have the same row, 1'),
  });
});

test('an insert function that was dropped is named', async ({ engine }) => {
  const { spawner } = await spawningFolder(engine);
  await engine.sql.query('drop function public.insert_files(text, jsonb)');
  expect(await engine.refusal(...spawner.chunk(numbers(1, 1)))).toMatchObject({
    code: 'MR004',
    message: expect.stringContaining('insert_files(text, jsonb) does not exist'),
  });
});

test('a row with a live run that was started by itself is refused, and can be had once that is over', async ({
  engine,
}) => {
  const { spawner } = await spawningFolder(engine, plain);
  await engine.queued('scan', 2);
  expect(await engine.refusal(...spawner.chunk([{ key: 1 }]))).toMatchObject({
    code: 'MR004',
    message:
      'row 1 has a live run of pipeline files that was started by itself. Let it finish or cancel it, then retry this run.',
  });
  await runStage(engine, 'scan', 'files');
  await runStage(engine, 'blend', 'files');
  expect(await spawner.spawn([{ key: 1 }, { key: 2 }])).toMatchObject({ status: 'spawned', spawned: 2 });
});

test('a row that is the child of another parent is refused with both named', async ({ engine }) => {
  await defineFamily(engine, plain);
  await engine.insert(2);
  const [first] = await startFolders(engine, 2);
  await spawnAll(engine, [{ key: 1 }]);
  const second = await Spawner.of(engine);
  expect(await engine.refusal(...second.chunk([{ key: 1 }, { key: 2 }]))).toMatchObject({
    code: 'MR004',
    message: expect.stringContaining(`a child of run ${(await folderRun(engine, first as string)).id}. Let it finish`),
  });
});

test('late children of a parent that is done make way for those of its next run', async ({ engine }) => {
  const { folder, fanOut } = await leftFolder(engine, 3);
  await endFiles(engine, [1]);
  await collectChildren(engine);
  await runStage(engine, 'publish', 'folder');
  expect(await childStatuses(engine, fanOut)).toEqual({ completed: 1, running: 2 });
  await engine.sql.query(`select millrace.start('folder', $1)`, [folder]);
  const next = await spawnAll(engine, numbers(1, 3));
  expect(await childStatuses(engine, next)).toEqual({ running: 3 });
  expect(await childStatuses(engine, fanOut)).toEqual({ completed: 1, cancelled: 2 });
  await endFiles(engine);
  expect(await collected(engine, folder)).toBe('completed');
});

test('children that were given up and still run make way for their successors', async ({ engine }) => {
  const { folder, fanOut } = await waitingFolder(engine, 2);
  await engine.sql.query(`update public.folders set split_status = 'queued'`);
  const next = await spawnAll(engine, numbers(1, 2));
  expect(next).not.toBe(fanOut);
  expect(await childStatuses(engine, fanOut)).toEqual({ cancelled: 2 });
  await endFiles(engine);
  await collectChildren(engine);
  expect(await stageAttempts(engine, folder, 'split')).toEqual(['1 cancelled superseded', '2 completed']);
});

test('a map whose worker says completed leaves its children to themselves', async ({ engine }) => {
  const { folder, spawner } = await spawningFolder(engine);
  await spawner.spawn(numbers(1, 2));
  expect(await spawner.worker.report(completed(spawner.item))).toEqual(['accepted']);
  expect(await folderStatuses(engine, folder)).toEqual({ split: 'completed', publish: 'queued' });
  await engine.expectSound();
  await endFiles(engine);
  await sweep(engine);
  expect(await childStatuses(engine, spawner.fanOut)).toEqual({ completed: 2 });
});

test('a map that fails before it waits is retried by its policy, and its children go on', async ({ engine }) => {
  const { folder, spawner } = await spawningFolder(engine);
  await spawner.spawn(numbers(1, 2));
  await spawner.worker.report({ ...completed(spawner.item), outcome: 'failed' });
  expect(await childStatuses(engine, spawner.fanOut)).toEqual({ running: 2 });
  await engine.advance('1 minute');
  await spawnAll(engine, numbers(1, 3));
  expect(await childStatuses(engine, spawner.fanOut)).toEqual({ running: 3 });
  await endFiles(engine);
  await collectChildren(engine);
  expect(await stageAttempts(engine, folder, 'split')).toEqual(['1 failed', '2 completed']);
});

test('children whose map fails for good are cancelled by the sweep', async ({ engine }) => {
  const { folder, spawner } = await spawningFolder(engine);
  await spawner.spawn(numbers(1, 2));
  await spawner.worker.report({ ...completed(spawner.item), outcome: 'failed', error: { permanent: true } });
  expect((await folderRun(engine, folder)).status).toBe('failed');
  expect(await sweep(engine)).toMatchObject({ cancelled: 2 });
  expect(await childStatuses(engine, spawner.fanOut)).toEqual({ cancelled: 2 });
  expect(await engine.item('1')).toMatchObject({ scan_status: 'failed', scan_error: 'cancelled' });
});

test('a chunk does not read all children that there are, though its plans are of a time without any', async ({
  engine,
}) => {
  const { spawner } = await spawningFolder(engine);
  const pagesOf = async (from: number): Promise<number> => {
    await spawner.worker.client.query('begin');
    const [call, values] = spawner.chunk(numbers(from, from + 99));
    const { rows } = await spawner.worker.client.query(`explain (analyze, buffers, format json) ${call}`, values);
    await spawner.worker.client.query('rollback');
    const [{ Plan: plan }] = rows[0]['QUERY PLAN'];
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
  };
  await spawner.spawn(numbers(1, 100));
  const few = await pagesOf(101);
  for (let from = 101; from < 2000; from += 100) await spawner.spawn(numbers(from, from + 99));
  expect(await pagesOf(2001)).toBeLessThan(few * 3);
});

test('many workers of one stage of the children and one that spawns do not wait for one another', async ({
  engine,
}) => {
  const { folder, spawner } = await spawningFolder(engine, { files: [{ name: 'scan', max_workers: 3 }] });
  const drain = async (): Promise<void> => {
    const worker = await Worker.of(engine, 'scan', 'files');
    for (let idle = 0; idle < 30; ) {
      const batch = await worker.take(5);
      idle = batch.length ? 0 : idle + 1;
      for (let rest = batch; rest.length > 0; ) {
        const { items } = await worker.complete(rest.map((item): Row => completed(item)));
        // Its row is held while a chunk names it once more.
        const busy = items.filter(({ verdict }) => verdict === 'busy').map(({ attempt }) => attempt);
        rest = rest.filter(({ attempt }) => busy.includes(attempt));
      }
      await collectChildren(engine, [spawner.fanOut], worker.client);
    }
  };
  const spawn = async (): Promise<void> => {
    for (let from = 1; from <= 91; from += 10) {
      while ((await spawner.spawn(numbers(from, from + 9), from === 91)).status === 'busy');
    }
    while ((await spawner.wait()).verdict === 'busy');
  };
  await spawner.spawn(numbers(1, 1));
  await Promise.all([spawn(), drain(), drain()]);
  while ((await runStage(engine, 'scan', 'files')).length > 0);
  await collectChildren(engine, [spawner.fanOut]);
  expect(await folderStatuses(engine, folder)).toMatchObject({ split: 'completed' });
  expect(await engine.value('select split_result from public.folders')).toMatchObject({ total: 100, completed: 100 });
});

test('a failed child that its row queues anew runs for itself, and its parent goes on without it', async ({
  engine,
}) => {
  const { folder, fanOut } = await waitingFolder(engine, 2, { split: { fan_in: { failed_children: 'ignore' } } });
  await failFiles(engine, [1]);
  const former = await fileRun(engine, fanOut, 1);
  await engine.sql.query(`update public.items set scan_status = 'queued' where id = $1`, [former.entity_id]);
  expect((await fileRun(engine, fanOut, 1)).id).toBe(former.id);
  await endFiles(engine, [2]);
  expect(await collected(engine, folder)).toBe('completed');
  expect(await engine.value('select split_result from public.folders')).toMatchObject({ completed: 1, failed: 1 });
  await runStage(engine, 'scan', 'files');
  expect(await engine.statuses(former.entity_id)).toMatchObject({ scan: 'completed', blend: 'queued' });
});
