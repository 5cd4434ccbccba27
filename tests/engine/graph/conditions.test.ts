import { expect } from 'vitest';
import { chain, type Engine, type Row, type StageDefinition, test } from '../../support/engine.ts';
import { diamond } from '../../support/sessions.ts';
import { completed, runStage, Worker } from '../../support/worker.ts';

/** Completes the one due attempt of a stage with this result. */
async function finish(engine: Engine, stage: string, result: unknown = { ok: true }): Promise<void> {
  const worker = await Worker.of(engine, stage);
  await worker.complete([completed(await worker.takeOne(), result)]);
  await worker.leave();
}

/** The shared graph of two: `count` needs nothing, `index` needs count under the condition. */
const counted = (when: string, more: Row = {}): StageDefinition[] => [
  { name: 'count' },
  { name: 'index', needs: ['count'], when, ...more },
];

const outcomes: [string, string, unknown, 'queued' | 'skipped'][] = [
  ['true', '$.needs.count.pages > 20', { pages: 21 }, 'queued'],
  ['false', '$.needs.count.pages > 20', { pages: 20 }, 'skipped'],
  ['null', '$.needs.count.pages > 20', { pages: null }, 'skipped'],
  ['unknown, for what is missing', '$.needs.count.pages > 20', {}, 'skipped'],
  ['unknown, for a text beside a number', '$.needs.count.pages > 20', { pages: 'many' }, 'skipped'],
  ['unknown, negated', '!($.needs.count.pages > 20)', { pages: 'many' }, 'skipped'],
  ['unknown, in strict mode', 'strict $.needs.count.pages > 20', {}, 'skipped'],
  ['true of what is missing', '!exists($.needs.count.pages)', {}, 'queued'],
];
for (const [what, when, output, status] of outcomes) {
  test(`a condition that is ${what} ${status === 'queued' ? 'lets the stage run' : 'skips the stage'}`, async ({
    engine,
  }) => {
    await engine.pipeline(counted(when));
    const [id] = await engine.queued('count');
    await finish(engine, 'count', output);
    expect(await engine.statuses(id)).toEqual({ count: 'completed', index: status });
    expect((await engine.run(id)).status).toBe(status === 'queued' ? 'running' : 'completed');
  });
}

test('a condition compares times on Postgres 17 and newer, and is refused on an older one', async ({ engine }) => {
  const when = '$.needs.count.at.datetime() < "2030-01-01T00:00:00Z".datetime()';
  const [{ version } = {}] = await engine.rows(`select current_setting('server_version_num')::int as version`);
  if (Number(version) < 170_000) {
    await expect(engine.pipeline(counted(when))).rejects.toThrow(
      'without datetime(), which reads ISO times from Postgres 17 on',
    );
    return;
  }
  await engine.pipeline(counted(when));
  const [id] = await engine.queued('count');
  await finish(engine, 'count', { at: '2026-11-02T09:00:00+01:00' });
  expect(await engine.statuses(id)).toEqual({ count: 'completed', index: 'queued' });
});

test("a condition reads the entity's own columns, but not the engine's", async ({ engine }) => {
  await engine.pipeline([
    { name: 'first', when: '$.entity.label == "item 1"' },
    { name: 'second', when: 'exists($.entity ? (@.first_status != ""))' },
  ]);
  const [one, two] = await engine.insert(2);
  for (const id of [one, two]) await engine.sql.query(`select millrace.start('flow', $1)`, [id]);
  expect(await engine.statuses(one)).toEqual({ first: 'queued', second: 'skipped' });
  expect((await engine.run(two)).status).toBe('completed');
});

test('a skipped stage shows as skipped, with no result, and says why in the timeline', async ({ engine }) => {
  await engine.pipeline([...counted('$.needs.count.pages > 20'), { name: 'print', needs: ['index', 'count'] }]);
  const [id] = await engine.queued('count');
  await finish(engine, 'count', { pages: 3 });
  expect(await engine.item(id)).toMatchObject({
    index_status: 'skipped',
    index_result: null,
    index_error: null,
    index_started_at: null,
    index_completed_at: await engine.now(),
    print_status: 'queued',
  });
  const timeline = 'select stage, state, error_code, error_message from millrace.timeline($1)';
  expect(await engine.rows(timeline, [(await engine.run(id)).id])).toMatchObject([
    { stage: 'count', state: 'completed' },
    { stage: 'index', state: 'skipped', error_code: 'skipped', error_message: 'its condition does not hold' },
    { stage: 'print', state: 'queued' },
  ]);
  const { needs } = await (await Worker.of(engine, 'print')).takeOne();
  expect(needs).toEqual({ count: { pages: 3 }, index: null });
});

test('skip: a diamond goes on with one arm, and its join runs once', async ({ engine }) => {
  const [first, left, right, last] = diamond() as [StageDefinition, StageDefinition, StageDefinition, StageDefinition];
  await engine.pipeline([first, { ...left, when: '$.needs.first.left == true' }, right, last]);
  const [id] = await engine.queued('first');
  await finish(engine, 'first', { left: false });
  expect(await engine.statuses(id)).toEqual({
    first: 'completed',
    left: 'skipped',
    right: 'queued',
    last: 'pending',
  });
  await finish(engine, 'right');
  const worker = await Worker.of(engine, 'last');
  const item = await worker.takeOne();
  expect(item.needs).toEqual({ left: null, right: { ok: true } });
  await worker.complete([completed(item)]);
  expect((await engine.run(id)).status).toBe('completed');
});

test('skip: when both arms are skipped at once their join runs once', async ({ engine }) => {
  const [first, left, right, last] = diamond() as [StageDefinition, StageDefinition, StageDefinition, StageDefinition];
  const never = { when: '$.entity.label == "nobody"' };
  await engine.pipeline([first, { ...left, ...never }, { ...right, ...never }, last]);
  const [id] = await engine.queued('first');
  await finish(engine, 'first');
  expect(await engine.attempts(id)).toEqual([
    'first 1 completed',
    'left 1 skipped',
    'right 1 skipped',
    'last 1 queued',
  ]);
});

test('skip: each follower has its own condition, and sees null for what was skipped', async ({ engine }) => {
  await engine.pipeline([
    ...counted('$.needs.count.pages > 20'),
    { name: 'short', needs: ['count'], when: '$.needs.count.pages <= 20' },
    { name: 'print', needs: ['index'], when: '$.needs.index == null' },
    { name: 'bind', needs: ['index', 'short'], when: '$.needs.index.ok == true' },
  ]);
  const [id] = await engine.queued('count');
  await finish(engine, 'count', { pages: 3 });
  expect(await engine.statuses(id)).toEqual({
    count: 'completed',
    index: 'skipped',
    short: 'queued',
    print: 'queued',
    bind: 'pending',
  });
  await finish(engine, 'short');
  expect(await engine.statuses(id)).toMatchObject({ bind: 'skipped' });
});

test('skip_dependents: all that depends on the stage is skipped, to the end of the run', async ({ engine }) => {
  await engine.pipeline([
    ...counted('$.needs.count.pages > 20', { otherwise: 'skip_dependents' }),
    { name: 'print', needs: ['index'] },
    { name: 'ship', needs: ['print'], when: '$.entity.id > 0' },
  ]);
  const [id] = await engine.queued('count');
  await finish(engine, 'count', { pages: 3 });
  expect(await engine.attempts(id)).toEqual([
    'count 1 completed',
    'index 1 skipped',
    'print 1 skipped',
    'ship 1 skipped',
  ]);
  expect((await engine.run(id)).status).toBe('completed');
  const why = `select distinct error_message from millrace.timeline($1) where stage in ('print', 'ship')`;
  expect(await engine.rows(why, [(await engine.run(id)).id])).toEqual([
    { error_message: 'a stage it depends on was skipped' },
  ]);
});

test('skip_dependents: a join is skipped though its other need is done, and what is beside goes on', async ({
  engine,
}) => {
  const [first, left, right, last] = diamond() as [StageDefinition, StageDefinition, StageDefinition, StageDefinition];
  const stages = [first, { ...left, when: '$.needs.first.left == true', otherwise: 'skip_dependents' }, right, last];
  await engine.pipeline([...stages, { name: 'beside', needs: ['right'] }]);
  const [id] = await engine.queued('first');
  await finish(engine, 'first', {});
  expect(await engine.statuses(id)).toMatchObject({ left: 'skipped', right: 'queued', last: 'pending' });
  await finish(engine, 'right');
  expect(await engine.statuses(id)).toMatchObject({ last: 'skipped', beside: 'queued' });
  await finish(engine, 'beside');
  expect((await engine.run(id)).status).toBe('completed');
});

test('skip_dependents: a condition that holds lets everything run', async ({ engine }) => {
  await engine.pipeline([
    ...counted('$.needs.count.pages > 20', { otherwise: 'skip_dependents' }),
    { name: 'print', needs: ['index'] },
  ]);
  const [id] = await engine.queued('count');
  await finish(engine, 'count', { pages: 30 });
  await finish(engine, 'index');
  expect(await engine.statuses(id)).toEqual({ count: 'completed', index: 'completed', print: 'queued' });
});

test('a first stage may be skipped, and the next one begins with the same statement', async ({ engine }) => {
  await engine.pipeline([
    { name: 'count', when: '$.entity.label == "nobody"' },
    { name: 'index', needs: ['count'] },
  ]);
  await engine.configureWakeUps();
  const [id] = await engine.queued('count');
  expect(await engine.statuses(id)).toEqual({ count: 'skipped', index: 'queued' });
  expect((await engine.wakes()).map(({ body }) => body.stage)).toEqual(['index']);
});

test('a run of which every stage is skipped is completed when it is started', async ({ engine }) => {
  await engine.pipeline(chain(['count', 'index', 'print'], { when: '$.entity.label == "nobody"' }));
  const [one, two] = await engine.queued('count', 2);
  expect((await engine.run(one)).status).toBe('completed');
  expect(await engine.statuses(two)).toEqual({ count: 'skipped', index: 'skipped', print: 'skipped' });
  const again = await engine.value(`select millrace.start('flow', $1)`, [one]);
  expect(await engine.run(one)).toMatchObject({ id: again, status: 'completed' });
});

test('several first stages begin each under its own condition', async ({ engine }) => {
  await engine.pipeline([
    { name: 'left', when: '$.entity.label == "item 1"' },
    { name: 'right', when: '$.entity.label == "item 2"' },
    { name: 'last', needs: ['left', 'right'] },
  ]);
  const ids = await engine.insert(3);
  for (const id of ids) await engine.sql.query(`select millrace.start('flow', $1)`, [id]);
  expect(await engine.statuses(ids[0])).toEqual({ left: 'queued', right: 'skipped', last: 'pending' });
  expect(await engine.statuses(ids[1])).toEqual({ left: 'skipped', right: 'queued', last: 'pending' });
  expect(await engine.statuses(ids[2])).toEqual({ left: 'skipped', right: 'skipped', last: 'queued' });
});

test('one batch is divided: some run, some are skipped, each once', async ({ engine }) => {
  await engine.pipeline([...counted('$.entity.id <= 3'), { name: 'print', needs: ['index'] }]);
  const ids = await engine.queued('count', 6);
  await runStage(engine, 'count');
  expect(
    await engine.rows(`select index_status, print_status, count(*)::int from public.items group by 1, 2 order by 1`),
  ).toEqual([
    { index_status: 'queued', print_status: 'pending', count: 3 },
    { index_status: 'skipped', print_status: 'queued', count: 3 },
  ]);
  await runStage(engine, 'index');
  await runStage(engine, 'print');
  for (const id of ids) expect((await engine.run(id)).status).toBe('completed');
});

test('a stage that a run comes to again is asked its condition again', async ({ engine }) => {
  await engine.pipeline(counted('$.entity.label == "long"'));
  const [id] = await engine.queued('count');
  await finish(engine, 'count');
  expect(await engine.attempts(id)).toEqual(['count 1 completed', 'index 1 skipped']);
  await engine.sql.query(`update public.items set label = 'long' where id = $1`, [id]);
  await engine.queue('count', [id as string]);
  await finish(engine, 'count');
  expect(await engine.statuses(id)).toEqual({ count: 'completed', index: 'queued' });
});

test('a condition belongs to the version that a run began with', async ({ engine }) => {
  const definition = await engine.pipeline(counted('$.needs.count.pages > 20'));
  const [id] = await engine.queued('count');
  definition.stages = counted('$.needs.count.pages > 2', { otherwise: 'skip_dependents' });
  expect(await engine.define(definition)).toBe(2);
  const [next] = await engine.queued('count');
  const worker = await Worker.of(engine, 'count');
  await worker.complete((await worker.take()).map((item) => completed(item, { pages: 10 })));
  expect(await engine.statuses(id)).toMatchObject({ index: 'skipped' });
  expect(await engine.statuses(next)).toMatchObject({ index: 'queued' });
});

test.for([
  '$.needs.count.pages > 2 && exists($.entity.label ? (@ starts with "item"))',
  '$."entity"."label" == "$.pages [" && $.needs.*.pages[0] == 1',
  '$.entity.type() == "object" && $.**.pages > 1 || exists($.needs.count)',
])('a condition over columns and needs is taken: %s', async (when, { engine }) => {
  await engine.pipeline([{ name: 'count' }, { name: 'index', needs: ['count'], when }]);
});

const refused: [string, Row, RegExp, RegExp][] = [
  [
    'is no jsonpath',
    { when: '$.needs.count.pages >' },
    /index\.when is .* must be a jsonpath predicate \(syntax error/,
    /\$\.needs/,
  ],
  ['is no text', { when: true }, /when is true, but must be a jsonpath predicate/, /\$\.needs/],
  ['is no predicate', { when: '$.entity.pages' }, /must be a jsonpath predicate, which is true or false/, /Compare/],
  [
    'is a filter',
    { when: '$.entity ? (@.pages > 20)' },
    /must be a jsonpath predicate, which is true or false/,
    /exists/,
  ],
  [
    'asks for what the stage does not need',
    { when: '$.needs.print.pages > 20' },
    /result of print, which is none of its needs/,
    /add it there/,
  ],
  [
    'asks for a column that is not there',
    { when: '$.entity.label == "$.entity.none" || $ . "entity" . pages > 20' },
    /index\.when asks for \$\.entity\.pages, which is no column of public\.items/,
    /Correct the name/,
  ],
  [
    'asks for a column of the engine',
    { when: '$.entity.count_status == "completed"' },
    /\$\.entity\.count_status, which the engine keeps for stage count/,
    /\$\.needs/,
  ],
  [
    'asks for a column of a stage that is gone',
    { when: '$.entity.gone_status == "completed"' },
    /\$\.entity\.gone_status, which the engine keeps for stage gone/,
    /\$\.needs/,
  ],
  [
    'asks in brackets, which Postgres takes for places of a list',
    { when: '$["needs"]["print"].pages > 20' },
    /has the name .* in brackets/,
    /put a dot before it/,
  ],
  [
    'asks in brackets behind a dot',
    { when: '$.entity.label == "[" || $.needs["count"].pages > 20' },
    /has the name .* in brackets/,
    /put a dot before it/,
  ],
  [
    'asks for neither entity nor needs',
    { when: '$.row.label == "item 1"' },
    /when asks for \$\.row/,
    /begin each path with \$\.entity or \$\.needs/,
  ],
  [
    'asks in another spelling for what the stage does not need',
    { when: 'strict $."needs" . "\\u0070rint".pages > 20' },
    /result of print, which is none of its needs/,
    /add it there/,
  ],
  ['has a variable', { when: '$.entity.pages > $limit' }, /without variables/, /\$\.entity/],
  [
    'has a variable behind what is false',
    { when: '$.entity.pages > 1 && $limit > 2' },
    /without variables/,
    /\$\.entity/,
  ],
  [
    'has an unknown way out',
    { when: '$.entity.pages > 1', otherwise: 'fail' },
    /otherwise is "fail"/,
    /skip_dependents/,
  ],
  ['is missing beside a way out', { otherwise: 'skip' }, /otherwise is skip, but there is no when/, /add a condition/],
];
test('a condition that could never hold is refused when it is defined, with field, value and remedy', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'count' }, { name: 'index', needs: ['count'] }, { name: 'gone' }]);
  for (const [what, options, message, hint] of refused) {
    const refusal = await engine.pipeline([{ name: 'count' }, { name: 'index', needs: ['count'], ...options }]).then(
      () => ({ code: `was not refused: ${what}` }),
      (error: Error) => error,
    );
    expect(refusal).toMatchObject({
      code: 'MR001',
      message: expect.stringMatching(message),
      hint: expect.stringMatching(hint),
    });
  }
});

test('a text that looks like a variable or a path is no fault', async ({ engine }) => {
  const conditions = [
    '$.entity.label == "costs $x"',
    '$.entity.label == "x$"',
    '$.entity."malformed key" == "a\\"$b"',
    '$.entity.label like_regex "^a.*$"',
  ];
  await engine.sql.query(
    'create table public.items (id bigint generated by default as identity primary key, label text, "malformed key" text)',
  );
  for (const when of conditions) await engine.pipeline([{ name: 'count', when }]);
});
