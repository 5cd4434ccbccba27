import { expect } from 'vitest';
import { defineFamily, folderStatuses, startFolders } from '../../support/engine/children.ts';
import { verb } from '../../support/engine/operations.ts';
import { chain, type Engine, type StageDefinition, test } from '../../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { completed, failed, finish, runStage, Worker } from '../../support/worker.ts';

/** print → publish → revise, which only a person begins → republish. */
const published = (): StageDefinition[] =>
  chain(['print', 'publish', 'revise', 'republish']).map((stage) =>
    stage.name === 'revise' ? { ...stage, on_demand: true } : stage,
  );

/** A row whose run has come to its end by itself. */
async function over(engine: Engine, projection = 'columns'): Promise<string> {
  await engine.pipeline(published(), { projection });
  const [id] = await engine.insert();
  await engine.sql.query(`select millrace.start('flow', $1)`, [id]);
  await runStage(engine, 'print');
  await finish(engine, 'publish', { at: 'page' });
  return id as string;
}

const runs = (engine: Engine, id: string) =>
  engine.value<number>('select count(*)::int from millrace.runs where entity_id = $1', [id]);

test('a run that comes to it by itself is over, and shows nothing of it or of what follows', async ({ engine }) => {
  const id = await over(engine);
  expect(await engine.run(id)).toMatchObject({ status: 'completed' });
  expect(await engine.statuses(id)).toEqual({
    print: 'completed',
    publish: 'completed',
    revise: 'pending',
    republish: 'pending',
  });
  const timeline = 'select stage, state, error_message from millrace.timeline($1) where state = $2';
  expect(await engine.rows(timeline, [(await engine.run(id)).id, 'skipped'])).toMatchObject([
    { stage: 'revise', error_message: 'nobody asked for it' },
    { stage: 'republish', error_message: 'nobody asked for it' },
  ]);
});

for (const projection of ['columns', 'none']) {
  test(`a start by name begins it in a run of its own, with the results before it (${projection})`, async ({
    engine,
  }) => {
    const id = await over(engine, projection);
    if (projection === 'none') await engine.sql.query(`select millrace.start('flow', $1, 'revise')`, [id]);
    else await engine.queue('revise', [id]);
    expect(await runs(engine, id)).toBe(2);
    const worker = await Worker.of(engine, 'revise');
    const item = await worker.takeOne();
    expect(item.needs).toEqual({ publish: { at: 'page' } });
    await worker.complete([completed(item)]);
    await runStage(engine, 'republish');
    expect(await engine.run(id)).toMatchObject({ status: 'completed' });
    expect(await engine.attempts(id)).toEqual([
      'print 1 completed',
      'publish 1 completed',
      'revise 1 skipped',
      'republish 1 skipped',
      'print 1 completed',
      'publish 1 completed',
      'revise 1 completed',
      'republish 1 completed',
    ]);
  });
}

test('a stage on demand may be begun again and again', async ({ engine }) => {
  const id = await over(engine);
  for (let times = 0; times < 2; times++) {
    await engine.queue('revise', [id]);
    await runStage(engine, 'revise');
    await runStage(engine, 'republish');
  }
  expect(await runs(engine, id)).toBe(3);
  expect(await engine.statuses(id)).toMatchObject({ revise: 'completed', republish: 'completed' });
});

test('a stage after one on demand cannot begin without it', async ({ engine }) => {
  const id = await over(engine);
  expect(await engine.refusal(`update public.items set republish_status = 'queued' where id = $1`, [id])).toMatchObject(
    {
      code: 'MR005',
      message: expect.stringContaining('its need revise has no result'),
      hint: expect.stringContaining('Queue revise instead'),
    },
  );
});

test('a stage after one on demand cannot begin without it while the run is under way either', async ({ engine }) => {
  await engine.pipeline([...published(), { name: 'archive', needs: ['print'] }]);
  const [id] = await engine.queued('print');
  await runStage(engine, 'print');
  await finish(engine, 'publish', { at: 'page' });
  expect(await engine.run(id)).toMatchObject({ status: 'running' });
  expect(await engine.refusal(`update public.items set republish_status = 'queued' where id = $1`, [id])).toMatchObject(
    { code: 'MR005', hint: 'Queue revise instead; the stages after it follow by themselves.' },
  );
  await engine.queue('revise', [id as string]);
  for (const stage of ['revise', 'republish', 'archive']) await runStage(engine, stage);
  expect(await engine.run(id)).toMatchObject({ status: 'completed' });
});

test('a stage that waits for a threshold of a map on demand cannot begin before somebody asks for the map', async ({
  engine,
}) => {
  const beside = [
    { name: 'print' },
    { name: 'peek', after: [{ map: 'split', stage: 'scan', count: 1 }] },
    { name: 'archive', needs: ['print'] },
  ];
  await defineFamily(engine, { split: { needs: ['print'], on_demand: true }, beside });
  const [folder] = await startFolders(engine);
  await runStage(engine, 'print', 'folder');
  const refused = await engine.refusal(`update public.folders set peek_status = 'queued' where id = $1`, [folder]);
  expect(refused).toMatchObject({
    code: 'MR005',
    hint: 'Queue split instead; the stages after it follow by themselves.',
  });
  await runStage(engine, 'archive', 'folder');
  expect(await folderStatuses(engine, folder as string)).toMatchObject({ split: 'pending', peek: 'pending' });
});

test('a stage on demand cannot begin before its needs, and a run under way is not disturbed by the refusal', async ({
  engine,
}) => {
  await engine.pipeline(published());
  const [id] = await engine.queued('print');
  expect((await engine.refusal(`update public.items set revise_status = 'queued' where id = $1`, [id])).code).toBe(
    'MR005',
  );
  expect(await engine.statuses(id)).toEqual({
    print: 'queued',
    publish: 'pending',
    revise: 'pending',
    republish: 'pending',
  });
});

test('a run that starts over from before it clears what it showed', async ({ engine }) => {
  const id = await over(engine);
  await engine.queue('revise', [id]);
  await runStage(engine, 'revise');
  await runStage(engine, 'republish');
  await engine.queue('print', [id]);
  expect(await engine.statuses(id)).toEqual({
    print: 'queued',
    publish: 'pending',
    revise: 'pending',
    republish: 'pending',
  });
  await runStage(engine, 'print');
  await runStage(engine, 'publish');
  expect(await engine.statuses(id)).toMatchObject({ publish: 'completed', revise: 'pending' });
  expect(await engine.run(id)).toMatchObject({ status: 'completed' });
});

test('a reset that names it begins it anew, and a reset before it skips it; both clear what it showed', async ({
  engine,
}) => {
  await engine.pipeline([
    { name: 'print', when: '$.entity.label != "withdrawn"' },
    { name: 'revise', needs: ['print'], on_demand: true },
    { name: 'republish', needs: ['revise'] },
  ]);
  const [id] = await engine.queued('print');
  await runStage(engine, 'print');
  await engine.queue('revise', [id as string]);
  await finish(engine, 'revise', { at: 'page' });
  await runStage(engine, 'republish');
  await verb(engine, 'reset', id, 'revise');
  expect(await engine.item(id)).toMatchObject({
    print_status: 'completed',
    revise_status: 'queued',
    revise_result: null,
    republish_status: 'pending',
  });
  await finish(engine, 'revise', { at: 'page' });
  await runStage(engine, 'republish');
  expect(await engine.run(id)).toMatchObject({ status: 'completed' });
  await engine.sql.query(`update public.items set label = 'withdrawn'`);
  await verb(engine, 'reset', id, 'print');
  expect(await engine.item(id)).toMatchObject({
    print_status: 'skipped',
    revise_status: 'pending',
    revise_result: null,
    republish_status: 'pending',
  });
});

test('a child run that is to go on, and fails at once, clears what it showed', async ({ engine }) => {
  await engine.pipeline([{ name: 'scan' }], {}, 'sub');
  await engine.pipeline([
    { name: 'inner', kind: 'pipeline', child: { pipeline: 'sub' }, on_failure: 'continue' },
    { name: 'revise', needs: ['inner'], on_demand: true },
    { name: 'beside' },
  ]);
  const [id] = await engine.queued('inner');
  const worker = await Worker.of(engine, 'scan', 'sub');
  await worker.report(failed(await worker.takeOne(), { permanent: true }));
  await engine.sql.query('select millrace.sweep()');
  await engine.queue('revise', [id as string]);
  await finish(engine, 'revise', { at: 'page' });
  await engine.sql.query(`select millrace.start('sub', $1)`, [id]);
  await verb(engine, 'reset_children', id, 'inner');
  expect(await engine.item(id)).toMatchObject({
    inner_status: 'failed',
    revise_status: 'pending',
    revise_result: null,
  });
});

test('a first stage that only a person begins does not begin with the run, beside it or inside a parent', async ({
  engine,
}) => {
  const stages = [{ name: 'check', on_demand: true }, { name: 'fetch' }, { name: 'print', needs: ['fetch'] }];
  await engine.pipeline(stages, {}, 'inner');
  await engine.pipeline([{ name: 'whole', kind: 'pipeline', child: { pipeline: 'inner' } }]);
  const [alone, inside] = await engine.insert(2);
  await engine.sql.query(`select millrace.start('inner', $1)`, [alone]);
  await engine.queue('whole', [inside as string]);
  expect(await engine.statuses(alone)).toMatchObject({ check: 'pending', fetch: 'queued' });
  expect(await engine.statuses(inside)).toMatchObject({ check: 'pending', fetch: 'queued', whole: 'started' });
});

test('two who begin it at once: one run has it, the other starts it over', async ({ engine }) => {
  const id = await over(engine);
  const one = await openTransaction(engine);
  const two = await openTransaction(engine);
  await one.query(`update public.items set revise_status = 'queued' where id = $1`, [id]);
  const second = begin(two.query(`select millrace.start('flow', $1, 'revise')`, [id]));
  await untilBlocked(engine, two);
  await one.query('commit');
  await second;
  await two.query('commit');
  expect(await runs(engine, id)).toBe(2);
  expect((await engine.attempts(id)).filter((text) => text.startsWith('revise'))).toEqual([
    'revise 1 skipped',
    'revise 1 queued',
  ]);
});

test('a start by name overrules a condition that does not hold; a run that comes to the stage asks it', async ({
  engine,
}) => {
  await engine.pipeline(
    chain(['fetch', 'score', 'print']).map((stage) =>
      stage.name === 'score' ? { ...stage, when: '$.entity.label == "nobody"' } : stage,
    ),
  );
  const [id] = await engine.queued('fetch');
  await runStage(engine, 'fetch');
  expect(await engine.statuses(id)).toMatchObject({ score: 'skipped', print: 'queued' });
  await engine.queue('score', [id as string]);
  expect(await engine.statuses(id)).toMatchObject({ score: 'queued', print: 'pending' });
  await engine.queue('fetch', [id as string]);
  await runStage(engine, 'fetch');
  expect(await engine.statuses(id)).toMatchObject({ score: 'skipped', print: 'queued' });
});

const refused: [string, StageDefinition[], RegExp][] = [
  [
    'has a condition beside',
    [{ name: 'a' }, { name: 'b', needs: ['a'], on_demand: true, when: '$.entity.id > 1' }],
    /stage b: when stands beside on_demand/,
  ],
  [
    'leaves nothing to begin with',
    [
      { name: 'a', on_demand: true },
      { name: 'b', needs: ['a'] },
    ],
    /stage a: on_demand leaves no stage with which a run begins by itself/,
  ],
];
for (const [what, stages, message] of refused) {
  test(`a definition is refused whose stage on demand ${what}`, async ({ engine }) => {
    const definition = await engine.pipeline([{ name: 'a' }, { name: 'b', needs: ['a'] }]);
    const refusal = await engine.refusedDefinition({ ...definition, stages });
    expect(refusal.code).toBe('MR001');
    expect(refusal.message).toMatch(message);
  });
}
