import { expect } from 'vitest';
import { collectChildren, waitingFolder } from '../../support/engine/children.ts';
import { chain, type Engine, findingsTest, type StageDefinition, test } from '../../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { completed, failed, finish, runStage, Worker } from '../../support/worker.ts';

const irrelevant = { name: 'irrelevant', when: '$.result.score < 0.5' };
const duplicate = { name: 'duplicate', when: '$.entity.label == "copy"' };

/** fetch → score, which may end the run → sum → print. */
const scored = (ends: object[] = [irrelevant]): StageDefinition[] =>
  chain(['fetch', 'score', 'sum', 'print']).map((stage) => (stage.name === 'score' ? { ...stage, ends } : stage));

const ended = (engine: Engine, id: string | undefined) =>
  engine.value<string | null>('select ended_as from millrace.runs where entity_id = $1 order by id desc limit 1', [id]);

test('the first condition that holds of the result ends the run under its name, and the stages after it are skipped', async ({
  engine,
}) => {
  await engine.pipeline(scored([{ name: 'hopeless', when: '$.result.score < 0.1' }, irrelevant]));
  const [low, high] = await engine.queued('fetch', 2);
  await runStage(engine, 'fetch');
  const worker = await Worker.of(engine, 'score');
  const batch = await worker.take();
  const verdicts = await worker.report(
    ...batch.map((item) => completed(item, { score: item.entity_id === low ? 0.4 : 0.9 })),
  );
  expect(verdicts).toEqual(['accepted', 'accepted']);
  expect(await engine.statuses(low)).toEqual({
    fetch: 'completed',
    score: 'completed',
    sum: 'skipped',
    print: 'skipped',
  });
  expect(await engine.run(low)).toMatchObject({ status: 'completed' });
  expect(await ended(engine, low)).toBe('irrelevant');
  expect(await engine.statuses(high)).toMatchObject({ score: 'completed', sum: 'queued' });
  expect(await ended(engine, high)).toBeNull();
});

test.for([
  [0.05, 'first'],
  [0.3, 'second'],
  [null, null],
] as const)(
  'a score of %s ends the run as %s: names keep the order in which they are written',
  async ([score, as], { engine }) => {
    await engine.pipeline(
      scored([
        { name: 'first', when: '$.result.score < 0.1' },
        { name: 'second', when: '$.result.score < 0.5' },
      ]),
      { projection: 'none' },
    );
    const [id] = await engine.insert();
    await engine.sql.query(`select millrace.start('flow', $1)`, [id]);
    await runStage(engine, 'fetch');
    await finish(engine, 'score', { score });
    expect(await ended(engine, id)).toBe(as);
  },
);

test('a condition on the row is asked after the stage has written it', async ({ engine }) => {
  await engine.pipeline(chain(['fetch', 'score', 'sum', 'print']));
  await engine.sql.query(`
    create function public.mark(p_items jsonb) returns void language sql as $$
      update public.items i set label = n #>> '{result,label}' from jsonb_array_elements(p_items) n where i.id = (n ->> 'entity_id')::bigint $$`);
  await engine.pipeline(
    scored([duplicate]).map((stage) => (stage.name === 'score' ? { ...stage, apply: 'public.mark' } : stage)),
  );
  const [copy, own] = await engine.queued('fetch', 2);
  await runStage(engine, 'fetch');
  const worker = await Worker.of(engine, 'score');
  await worker.report(
    ...(await worker.take()).map((item) => completed(item, { label: item.entity_id === copy ? 'copy' : 'own' })),
  );
  expect(await ended(engine, copy)).toBe('duplicate');
  expect(await engine.statuses(own)).toMatchObject({ sum: 'queued' });
});

findingsTest(
  'an ending is no failure: no dead letter, no alert, and the timeline says why the rest was skipped',
  async ({ engine }) => {
    await engine.pipeline(scored());
    const [id] = await engine.queued('fetch');
    await runStage(engine, 'fetch');
    await finish(engine, 'score', { score: 0 });
    await engine.sql.query('select millrace.sweep()');
    expect(await engine.rows('select * from millrace.dead_letters')).toEqual([]);
    expect(await engine.rows('select * from millrace.alerts')).toEqual([]);
    const timeline = 'select stage, state, error_message from millrace.timeline($1)';
    expect(await engine.rows(timeline, [(await engine.run(id)).id])).toMatchObject([
      { stage: 'fetch', state: 'completed' },
      { stage: 'score', state: 'completed' },
      { stage: 'sum', state: 'skipped', error_message: 'the run ended as irrelevant' },
      { stage: 'print', state: 'skipped', error_message: 'the run ended as irrelevant' },
    ]);
  },
);

test('a stage beside the one that ends the run is cancelled, its token is void, and it counts as skipped', async ({
  engine,
}) => {
  await engine.pipeline([
    { name: 'fetch' },
    { name: 'score', needs: ['fetch'], ends: [irrelevant] },
    { name: 'draw', needs: ['fetch'] },
    { name: 'ask', needs: ['fetch'], kind: 'manual' },
    { name: 'print', needs: ['score', 'draw', 'ask'] },
  ]);
  const [id] = await engine.queued('fetch');
  await runStage(engine, 'fetch');
  const other = await Worker.of(engine, 'draw');
  const item = await other.takeOne();
  await finish(engine, 'score', { score: 0 });
  expect(await engine.statuses(id)).toEqual({
    fetch: 'completed',
    score: 'completed',
    draw: 'skipped',
    ask: 'skipped',
    print: 'skipped',
  });
  expect(await other.report(completed(item))).toEqual(['stale']);
  await engine.sql.query('select millrace.sweep()');
  expect(await engine.value('select closed_why from public.millrace_decisions')).toBe('the attempt was cancelled');
});

test('a person decides, and the run ends under a name', async ({ engine }) => {
  const ends = [{ name: 'rejected', when: '$.result.decision.verdict == "reject"' }];
  await engine.pipeline([
    { name: 'review', kind: 'manual', ends },
    { name: 'print', needs: ['review'] },
  ]);
  const [no, yes] = await engine.queued('review', 2);
  for (const [id, verdict] of [
    [no, 'reject'],
    [yes, 'approve'],
  ]) {
    await engine.sql.query(
      'select public.millrace_decide(attempt_id, $2) from public.millrace_decisions where entity_id = $1',
      [id, JSON.stringify({ verdict })],
    );
  }
  expect(await ended(engine, no)).toBe('rejected');
  expect(await engine.statuses(no)).toEqual({ review: 'completed', print: 'skipped' });
  expect(await engine.statuses(yes)).toEqual({ review: 'completed', print: 'queued' });
});

test('a start by name after an ending goes on from the results before it; what was left out is asked for anew', async ({
  engine,
}) => {
  await engine.pipeline(scored());
  const [id] = await engine.queued('fetch');
  await runStage(engine, 'fetch');
  await finish(engine, 'score', { score: 0.2 });
  expect(await engine.refusal(`update public.items set print_status = 'queued' where id = $1`, [id])).toMatchObject({
    code: 'MR005',
    message: expect.stringContaining('its need sum has no result'),
  });
  await engine.queue('sum', [id as string]);
  expect(await engine.statuses(id)).toEqual({
    fetch: 'completed',
    score: 'completed',
    sum: 'queued',
    print: 'pending',
  });
  expect(await ended(engine, id)).toBeNull();
  const { needs } = await (await Worker.of(engine, 'sum')).takeOne();
  expect(needs).toEqual({ score: { score: 0.2 } });
});

test('a reset takes the ending back: what ran beside it begins again too', async ({ engine }) => {
  await engine.pipeline([
    { name: 'fetch' },
    { name: 'score', needs: ['fetch'], ends: [irrelevant] },
    { name: 'draw', needs: ['fetch'] },
  ]);
  const [id] = await engine.queued('fetch');
  await runStage(engine, 'fetch');
  await finish(engine, 'score', { score: 0 });
  const { id: run } = await engine.run(id);
  await engine.sql.query(`select millrace.reset($1, 'score')`, [run]);
  expect(await engine.statuses(id)).toEqual({ fetch: 'completed', score: 'queued', draw: 'queued' });
  expect(await ended(engine, id)).toBeNull();
});

test('a child that ends under a name is a completed child, and its parent counts the stages that it left out', async ({
  engine,
}) => {
  const { fanOut } = await waitingFolder(engine, 1, {
    files: chain(['scan', 'blend']).map((stage) => (stage.name === 'scan' ? { ...stage, ends: [irrelevant] } : stage)),
    beside: [
      { name: 'count', after: [{ map: 'split', stage: 'blend', count: 1 }] },
      { name: 'publish', needs: ['split'] },
    ],
  });
  const child = await Worker.of(engine, 'scan', 'files');
  await child.complete([completed(await child.takeOne(), { score: 0 })]);
  await collectChildren(engine, [fanOut]);
  const [parent] = await engine.rows(
    'select split_status, split_result, count_status, publish_status from public.folders',
  );
  expect(parent).toMatchObject({
    split_status: 'completed',
    split_result: { total: 1, completed: 1, failed: 0, cancelled: 0 },
    count_status: 'queued',
    publish_status: 'queued',
  });
});

test('the two at once: a completion that ends the run, and its cancellation by a person', async ({ engine }) => {
  await engine.pipeline(scored());
  const [id] = await engine.queued('fetch');
  await runStage(engine, 'fetch');
  const worker = await Worker.of(engine, 'score');
  const item = await worker.takeOne();
  const { id: run } = await engine.run(id);
  await worker.client.query('begin');
  expect(await worker.report(completed(item, { score: 0 }))).toEqual(['accepted']);
  const other = await openTransaction(engine);
  const cancelled = begin(other.query('select millrace.cancel($1)', [run]));
  await untilBlocked(engine, other);
  await worker.client.query('commit');
  await expect(cancelled).rejects.toMatchObject({ code: 'MR004', message: expect.stringContaining('it is completed') });
  expect(await ended(engine, id)).toBe('irrelevant');
});

test('a trigger that starts the row anew when it ends is not overwritten', async ({ engine }) => {
  await engine.pipeline(scored());
  await engine.sql.query(`
    create function public.again() returns trigger language plpgsql as $$ begin
      update public.items set fetch_status = 'queued' where id = new.id; return null; end $$;
    create trigger again after update on public.items for each row
      when (new.score_status = 'completed' and old.score_status <> 'completed') execute function public.again()`);
  const [id] = await engine.queued('fetch');
  await runStage(engine, 'fetch');
  await finish(engine, 'score', { score: 0 });
  expect(await engine.statuses(id)).toEqual({ fetch: 'queued', score: 'pending', sum: 'pending', print: 'pending' });
});

test('of a batch one ends, one fails and one goes on', async ({ engine }) => {
  await engine.pipeline(scored());
  const ids = await engine.queued('fetch', 3);
  await runStage(engine, 'fetch');
  const worker = await Worker.of(engine, 'score');
  const [one, two, three] = await worker.take();
  if (!one || !two || !three) throw new Error('three were queued');
  const verdicts = await worker.report(
    completed(one, { score: 0 }),
    failed(two, { permanent: true }),
    completed(three, { score: 1 }),
  );
  expect(verdicts).toEqual(['accepted', 'accepted', 'accepted']);
  const status = async (place: number) => (await engine.run(ids[place])).status;
  expect([await status(0), await status(1), await status(2)]).toEqual(['completed', 'failed', 'running']);
});

test('a stage without endings keeps the fast way of its batches', async ({ engine }) => {
  await engine.pipeline(scored());
  const asked = 'select s.name, s.has_ends from millrace.stages s join millrace.pipelines p on p.id = s.pipeline_id';
  expect(await engine.rows(`${asked} where p.name = 'flow' order by s.id`)).toEqual([
    { name: 'fetch', has_ends: false },
    { name: 'score', has_ends: true },
    { name: 'sum', has_ends: false },
    { name: 'print', has_ends: false },
  ]);
});

const refused: [string, object[], RegExp][] = [
  [
    'asks for what is no root',
    [{ name: 'a', when: '$.needs.fetch.x == 1' }],
    /score: ends\.a asks for \$\.needs: begin each path with \$\.entity or \$\.result/,
  ],
  [
    'asks for a column there is not',
    [{ name: 'a', when: '$.entity.labl == 1' }],
    /ends\.a asks for \$\.entity\.labl, which is no column of public\.items/,
  ],
  [
    'is no predicate',
    [{ name: 'a', when: '$.result.score' }],
    /ends\.a is .*must be a jsonpath predicate, which is true or false/,
  ],
];
for (const [what, ends, message] of refused) {
  test(`a definition is refused whose ending ${what}`, async ({ engine }) => {
    await engine.pipeline(chain(['fetch', 'score']));
    const definition = await engine.pipeline(chain(['fetch', 'score', 'sum', 'print']));
    const refusal = await engine.refusedDefinition({ ...definition, stages: scored(ends) });
    expect(refusal.code).toBe('MR001');
    expect(refusal.message).toMatch(message);
  });
}
