// Edits on a copy: a copy runs like any other run, and nobody but those who look at it sees anything of it.
import { expect } from 'vitest';
import { defineSplit, insertParts, spawnParts } from '../../support/engine/operations.ts';
import { journal, type Operator, signIn } from '../../support/engine/operators.ts';
import { makeLinks } from '../../support/engine/status.ts';
import { chain, type Engine, type Row, type StageDefinition, test } from '../../support/engine.ts';
import { completed, failed, finish, runStage, Worker } from '../../support/worker.ts';

const form = {
  result: { type: 'object', properties: { score: { type: 'integer' } }, required: ['score'] },
  row: { type: 'object', additionalProperties: false, properties: { label: { type: 'string' } } },
};

interface Made {
  id: string;
  run: number;
  ada: Operator;
  /** Edits stage `one` on a copy; resolves to the run of the copy. */
  edit: (more: Row) => Promise<number>;
  request: Row;
}

/** A row of `flow` whose stages have run through, the first with the result {score: 1}, and who edits it on copies. */
async function ranThrough(engine: Engine, stages: StageDefinition[] = chain(['one', 'two', 'three'])): Promise<Made> {
  await engine.pipeline(stages);
  await engine.sql.query('select millrace_tell_form($1, $2, $3)', ['flow', 'one', JSON.stringify(form)]);
  const [id = ''] = await engine.queued(stages[0]?.name ?? '');
  let [run, attempt] = [0, 0];
  for (const { name } of stages) {
    if (name === 'one') ({ run, attempt } = await finish(engine, 'one', { score: 1 }));
    else await runStage(engine, name);
  }
  const ada = await signIn(engine, 'ada', { payloads: true });
  const request = { run, stage: 'one', attempt, copy: true };
  const edit = async (more: Row) => (await ada.act<{ copy: number }>('edit', { ...request, ...more })).copy;
  return { id, run, ada, edit, request };
}

/** All of a row and of its own runs, down to the version of the row that Postgres keeps. */
const allOf = (engine: Engine, id: string) =>
  engine.rows(
    `select i.xmin::text, to_jsonb(i) as item, (
       select jsonb_agg(to_jsonb(r) || jsonb_build_object('attempts', (
         select jsonb_agg(a order by a.id) from millrace.attempts a where a.run_id = r.id)) order by r.id)
       from millrace.runs r where r.entity_id = i.id::text) as runs
     from public.items i where i.id = $1`,
    [id],
  );

const statusOf = (engine: Engine, run: number) =>
  engine.value<string | null>('select status from millrace.runs where id = $1', [run]);

test('a copy runs from the edited result on, and neither the row nor its run changes through failure, retry, reset, cancel and prune', async ({
  engine,
}) => {
  const { id, run, ada, edit } = await ranThrough(engine);
  const before = await allOf(engine, id);
  const copy = await edit({ result: { score: 7 } });
  const start = `select millrace.start('flow', (select entity_id from millrace.runs where id = $1))`;
  expect(await engine.refusal(start, [copy])).toMatchObject({
    code: 'MR003',
    message: expect.stringContaining('is a copy, no row'),
  });
  const worker = await Worker.of(engine, 'two');
  const item = await worker.takeOne();
  expect(item).toMatchObject({ run: copy, entity_id: id, needs: { one: { score: 7 } }, entity: { label: 'item 1' } });
  expect(await worker.report(failed(item, { permanent: true }))).toEqual(['accepted']);
  expect(await statusOf(engine, copy)).toBe('failed');
  await ada.act('retry', { run: copy });
  await runStage(engine, 'two');
  await runStage(engine, 'three');
  expect(await statusOf(engine, copy)).toBe('completed');
  await ada.act('reset', { run: copy, stage: 'two' });
  await ada.act('skip', { run: copy, stage: 'two' });
  await ada.act('cancel', { run: copy });
  expect(await statusOf(engine, copy)).toBe('cancelled');
  await ada.act('reset', { run: copy });
  for (const stage of ['one', 'two', 'three']) await runStage(engine, stage);
  expect(await statusOf(engine, copy)).toBe('completed');
  await engine.expectSound();
  expect(await allOf(engine, id)).toEqual(before);
  await engine.sql.query('update millrace.runs set finished_at = millrace.now() where id = $1', [run]);
  await engine.advance('91 days');
  await engine.sql.query('select millrace.prune()');
  expect(await engine.value('select count(*)::int from millrace.runs')).toBe(0);
  expect(await engine.rows('select entity_id from millrace.former_runs')).toEqual([{ entity_id: id }]);
  expect((await allOf(engine, id))[0]).toMatchObject({ item: before[0]?.item, xmin: before[0]?.xmin });
});

test('a copy takes over what came before and beside the edited stage, at no cost, and says which attempt made it', async ({
  engine,
}) => {
  const { edit, ada, run } = await ranThrough(engine, [
    { name: 'before' },
    { name: 'one', needs: ['before'] },
    { name: 'beside', needs: ['before'] },
    { name: 'last', needs: ['one', 'beside'] },
  ]);
  const copy = await edit({ result: { score: 2 } });
  expect((await runStage(engine, 'last'))[0]).toMatchObject({ run: copy });
  const { stages } = await ada.ask<{ stages: Row[] }>('run', { run: copy });
  expect(stages).toMatchObject([
    { stage: 'before', made_by: { run } },
    { stage: 'one', made_by: { service: 'by_hand', run: copy } },
    { stage: 'beside', made_by: { run } },
    { stage: 'last', made_by: { run: copy } },
  ]);
});

test('the columns that an edit gives to a copy are read by the copy alone', async ({ engine }) => {
  const stages = chain(['one', 'two']);
  const { id, edit, ada } = await ranThrough(engine, [
    ...stages,
    { name: 'three', needs: ['two'], when: '$.entity.label == "changed"' },
  ]);
  const copy = await edit({ row: { label: 'changed' } });
  const [one] = await runStage(engine, 'one');
  expect(one).toMatchObject({ run: copy, entity_id: id, entity: { id: Number(id), label: 'changed' }, needs: {} });
  await runStage(engine, 'two');
  // By its condition on the row, which does not hold of the row itself.
  expect(await runStage(engine, 'three')).toMatchObject([{ run: copy, entity: { label: 'changed' } }]);
  expect(await statusOf(engine, copy)).toBe('completed');
  const { row } = await ada.ask<{ row: Row }>('attempt', { attempt: one?.attempt });
  expect(row).toEqual({ label: 'changed' });
  await ada.act('edit', { run: copy, stage: 'one', attempt: one?.attempt, row: { label: 'again' } });
  expect((await runStage(engine, 'one'))[0]?.entity).toMatchObject({ label: 'again' });
  await engine.queue('one', [id]);
  expect((await runStage(engine, 'one'))[0]?.entity).toMatchObject({ label: 'item 1' });
  expect(await engine.item(id)).toMatchObject({ label: 'item 1' });
});

test('a value that an edit gives to a copy has the form that its column gives it, or is refused', async ({
  engine,
}) => {
  await engine.sql.query(`create table public.items (id bigint generated by default as identity primary key,
    label varchar(9), due timestamptz)`);
  const { edit, ada, request } = await ranThrough(engine);
  const row = { type: 'object', properties: { due: { type: 'string' }, label: { type: 'string' } } };
  await engine.sql.query('select millrace_tell_form($1, $2, $3)', ['flow', 'one', JSON.stringify({ row })]);
  await edit({ row: { due: '2026-12-01 10:00Z' } });
  expect((await runStage(engine, 'one'))[0]?.entity).toMatchObject({ due: '2026-12-01T10:00:00+00:00' });
  for (const wrong of [{ due: 'soon' }, { label: 'ten letters' }])
    expect((await ada.refused('edit', { ...request, row: wrong })).code).toMatch(/^22/);
  expect(await engine.value('select count(*)::int from millrace.runs where copy_of is not null')).toBe(1);
});

test('a copy and its row go on side by side, in one batch too', async ({ engine }) => {
  const { id, edit } = await ranThrough(engine);
  const copies = [await edit({ result: { score: 3 } }), await edit({ result: { score: 4 } })];
  await engine.queue('two', [id]);
  const worker = await Worker.of(engine, 'two');
  const batch = await worker.take();
  expect(batch.map((item) => [item.entity_id, item.needs])).toEqual([
    [id, { one: { score: 3 } }],
    [id, { one: { score: 4 } }],
    [id, { one: { score: 1 } }],
  ]);
  expect(await worker.report(...batch.map((item) => completed(item, item.needs)))).toEqual(Array(3).fill('accepted'));
  expect(await engine.item(id)).toMatchObject({ two_result: { one: { score: 1 } }, three_status: 'queued' });
  await runStage(engine, 'three');
  expect(await engine.run(id)).toMatchObject({ status: 'completed' });
  for (const copy of copies) expect(await statusOf(engine, copy)).toBe('completed');
});

test.for([
  ['with its trigger', ''],
  ['without it', 'set session_replication_role = replica;'],
])(
  'a row that is deleted %s takes its copies with it, those under way and those that are over',
  async ([, how], { engine }) => {
    const { id, edit } = await ranThrough(engine);
    const over = await edit({ result: { score: 2 } });
    for (const stage of ['two', 'three']) await runStage(engine, stage);
    const live = await edit({ result: { score: 3 } });
    const worker = await Worker.of(engine, 'two');
    const item = await worker.takeOne();
    const alias = await engine.value('select entity_id from millrace.runs where id = $1', [live]);
    const owner = await engine.database.connect('supabase_admin');
    await owner.query(`${how} delete from public.items where id = ${Number(id)}; reset session_replication_role`);
    expect(['stale', 'busy', 'rejected']).toContain((await worker.report(completed(item)))[0]);
    expect(await statusOf(engine, live)).toBeUndefined();
    if (how === '') expect(await statusOf(engine, over)).toBeUndefined();
    // A transition that has read the copy's entity before is not stopped by it.
    const locked = 'select millrace.lock_present(id, array[$1]) from millrace.pipelines';
    expect(await engine.value(locked, [alias])).toEqual([]);
  },
);

test('a copy of a row with a text key is known by its run alone', async ({ engine }) => {
  await engine.sql.query(`create table public.notes (id text primary key, label text);
    insert into public.notes values ('a', 'first'), ('b', 'second')`);
  await engine.pipeline(chain(['one', 'two']), { table: 'public.notes', label: 'label' });
  await engine.sql.query(`update public.notes set one_status = 'queued' where id = 'a'`);
  const { run, attempt } = await finish(engine, 'one', { score: 1 });
  await runStage(engine, 'two');
  const ada = await signIn(engine, 'ada', { payloads: true });
  const { copy } = await ada.act<{ copy: number }>('edit', { run, stage: 'one', attempt, copy: true, result: 5 });
  const alias = await engine.value<string>('select entity_id from millrace.runs where id = $1', [copy]);
  expect(alias).toMatch(/^copy [0-9a-f]{8} of a$/);
  expect(await engine.refusal(`select millrace.start('flow', $1)`, [alias])).toMatchObject({ code: 'MR003' });
  // A row whose own key looks like a copy is a row.
  await engine.sql.query(`insert into public.notes (id, one_status) values ('copy 00000000 of b', 'queued')`);
  expect(await runStage(engine, 'one')).toMatchObject([{ entity_id: 'copy 00000000 of b', entity: { label: null } }]);
  expect((await runStage(engine, 'two')).map((item) => item.entity_id)).toEqual(['a', 'copy 00000000 of b']);
  expect(await ada.ask('run', { run: copy })).toMatchObject({ copy_of: run, label: 'Copy of first', entity: 'a' });
  expect(await ada.ask('run', { run })).toMatchObject({ journal: [{ outcome: { copy } }] });
});

test('a copy takes the children of a map over and never begins any', async ({ engine }) => {
  await defineSplit(engine, [{ name: 'one' }, { name: 'two', needs: ['one'] }]);
  await engine.sql.query('select millrace_tell_form($1, $2, $3)', ['flow', 'one', JSON.stringify(form)]);
  const [id] = await engine.queued('one');
  const { run, attempt } = await finish(engine, 'one', { score: 1 });
  const ada = await signIn(engine, 'ada', { payloads: true });
  const request = { run, stage: 'one', attempt, copy: true, result: { score: 2 } };
  expect(await ada.refused('edit', request)).toMatchObject({
    code: 'MR002',
    message: 'stage split writes rows or asks a person, which no copy does',
    hint: 'Edit the run itself.',
  });
  expect(await ada.refused('reset', { run, copy: true })).toMatchObject({
    code: 'MR002',
    message: 'copy is true, but only an edit makes one',
  });
  expect(await engine.value('select count(*)::int from millrace.runs')).toBe(1);
  // Done beside the edited stage, the map is taken over; a copy that is reset as a whole would begin it.
  await engine.sql.query('select millrace.skip($1, $2)', [run, 'split']);
  const { copy } = await ada.act<{ copy: number }>('edit', request);
  expect((await runStage(engine, 'two')).map((item) => item.run)).toEqual([run, copy]);
  expect(await ada.refused('reset', { run: copy })).toMatchObject({ code: 'MR002' });
  expect(await ada.refused('reset', { run: copy, stage: 'split' })).toMatchObject({ code: 'MR002' });
  expect(await engine.item(id)).toMatchObject({ one_result: { score: 1 } });
});

test.for([
  ['asks a person', { kind: 'manual' }],
  ['has an apply function', { apply: 'public.take' }],
] as const)('an edit on a copy is refused where a stage behind the edited one %s', async ([, options], { engine }) => {
  await engine.sql.query(`create function public.take(p jsonb) returns void language sql as ''`);
  const { ada, request } = await ranThrough(engine, [{ name: 'one' }, { name: 'two', needs: ['one'], ...options }]);
  const before = await engine.rows('select * from millrace.attempts');
  expect(await ada.refused('edit', { ...request, result: { score: 2 } })).toMatchObject({
    code: 'MR002',
    message: 'stage two writes rows or asks a person, which no copy does',
  });
  expect(await engine.rows('select * from millrace.attempts')).toEqual(before);
});

test('an apply function that a later definition names is called for rows and for no copy', async ({ engine }) => {
  await engine.sql.query(`create table public.taken (items jsonb);
    create function public.take(p jsonb) returns void language sql as 'insert into public.taken values (p)'`);
  const { id, edit } = await ranThrough(engine, chain(['one', 'two']));
  const copies = [await edit({ result: { score: 2 } }), await edit({ result: { score: 3 } })];
  await engine.pipeline([{ name: 'one' }, { name: 'two', needs: ['one'], apply: 'public.take' }]);
  const worker = await Worker.of(engine, 'two');
  expect(await worker.report(completed(await worker.takeOne()))).toEqual(['accepted']);
  expect(await engine.rows('select * from public.taken')).toEqual([]);
  await engine.queue('two', [id]);
  expect((await runStage(engine, 'two')).map((item) => item.entity_id)).toEqual([id, id]);
  expect(await engine.rows('select * from public.taken')).toMatchObject([{ items: [{ entity_id: id }] }]);
  for (const copy of copies) expect(await statusOf(engine, copy)).toBe('completed');
});

test.for([
  ['asks a person', { kind: 'manual' }],
  ['begins a child', { kind: 'pipeline', child: { pipeline: 'sub' } }],
] as const)('a copy fails before a stage that by a later definition %s', async ([, options], { engine }) => {
  const { id, edit } = await ranThrough(engine);
  const copy = await edit({ result: { score: 2 } });
  await engine.pipeline([{ name: 'scan' }], { projection: 'none' }, 'sub');
  const two = { name: 'two', needs: ['one'], retry: { maxAttempts: 1 } };
  await engine.pipeline([{ name: 'one' }, two, { name: 'three', needs: ['two'], ...options }]);
  const before = await engine.item(id);
  await runStage(engine, 'two');
  expect(await engine.rows('select id::int, status, error_code from millrace.runs order by id')).toMatchObject([
    { status: 'completed' },
    { id: copy, status: 'failed', error_code: 'sql_MR002' },
  ]);
  expect(await engine.item(id)).toEqual(before);
});

test('a copy spawns no children at a stage that by a later definition is a map', async ({ engine }) => {
  const { edit } = await ranThrough(engine, chain(['one', 'two']));
  await edit({ row: { label: 'other' } });
  const map = { name: 'two', needs: ['one'], kind: 'map', child: { pipeline: 'parts' } };
  await engine.pipeline([{ name: 'scan' }], { table: 'public.parts' }, 'parts');
  await engine.pipeline([{ name: 'one' }, map]);
  await runStage(engine, 'one');
  const parts = await insertParts(engine, 1);
  await expect(spawnParts(engine, parts, 'two')).rejects.toMatchObject({ code: 'MR002' });
  expect(await engine.value('select count(*)::int from millrace.fan_outs')).toBe(0);
});

test('a stage on demand, and what needs it, is skipped in a copy as in any run that nobody asks for it', async ({
  engine,
}) => {
  const { ada, request } = await ranThrough(engine, chain(['one', 'two']));
  await engine.pipeline([
    ...chain(['one', 'two']),
    { name: 'asked', kind: 'manual', needs: ['one'], on_demand: true },
    { name: 'after', kind: 'manual', needs: ['asked'] },
  ]);
  await engine.sql.query(`select millrace.start('flow', (select entity_id from millrace.runs), 'one')`);
  const { run, attempt } = await finish(engine, 'one', { score: 1 });
  await runStage(engine, 'two');
  const { copy } = await ada.act<{ copy: number }>('edit', { ...request, run, attempt, result: { score: 2 } });
  await runStage(engine, 'two');
  expect(await statusOf(engine, copy)).toBe('completed');
  const { stages } = await ada.ask<{ stages: Row[] }>('run', { run: copy });
  expect(stages.map(({ state }) => state)).toEqual(['completed', 'completed', 'skipped', 'skipped']);
});

test('a copy is queued under the key that an edit gives it, its row under its own', async ({ engine }) => {
  const limits = { concurrency: { column: 'label', limit: 9 } };
  const { id, edit } = await ranThrough(engine, [
    { name: 'one', limits },
    { name: 'two', needs: ['one'], limits },
  ]);
  await edit({ row: { label: 'other' } });
  await edit({ row: { label: '' } });
  await edit({ result: { score: 2 } });
  await runStage(engine, 'one');
  await engine.queue('two', [id]);
  expect(
    await engine.rows(`select concurrency_group from millrace.attempts where state = 'queued' order by id`),
  ).toEqual(['0item 1', '0other', '0', '0item 1'].map((concurrency_group) => ({ concurrency_group })));
});

test('a list of the runs of a row has its copies, too', async ({ engine }) => {
  const { id, run, ada, edit } = await ranThrough(engine);
  const copy = await edit({ result: { score: 2 } });
  const listed = async (more: Row) =>
    (await ada.ask<{ runs: Row[] }>('runs', { entity: id, ...more })).runs.map((row) => [row.run, row.entity]);
  expect(await listed({})).toEqual([
    [copy, id],
    [run, id],
  ]);
  expect(await listed({ pipeline: 'flow', status: 'running' })).toEqual([[copy, id]]);
  expect(await listed({ entity: `${id}0` })).toEqual([]);
});

test('a pipeline that shows its runs on one status column has no copies', async ({ engine }) => {
  await makeLinks(engine);
  const link = await engine.value(`insert into public.link (label, status) values ('a', 'new') returning id`);
  const { run, attempt } = await finish(engine, 'classify', { ok: true }, 'page_links');
  const ada = await signIn(engine, 'ada', { payloads: true });
  const request = { run, stage: 'classify', attempt, copy: true, result: 1 };
  expect((await ada.refused('edit', request)).message).toMatch(/^stage \w+ writes rows or asks a person/);
  expect(await engine.value('select count(*)::int from millrace.runs where entity_id = $1', [link])).toBe(1);
});

test('the answer to an edit on a copy names the run of the copy, and the journal has it with both runs', async ({
  engine,
}) => {
  const { run, ada, request } = await ranThrough(engine);
  const answer = await ada.act<{ copy: number }>('edit', { ...request, result: { score: 2 }, reason: 'a try' });
  expect(answer).toMatchObject({ run, status: 'completed', before: { value: { score: 1 } }, copy: expect.any(Number) });
  const lines = (await journal(engine)).filter(({ verb }) => verb === 'edit');
  expect(lines).toMatchObject([{ run_ids: [run, answer.copy].map(String), reason: 'a try' }]);
  const { entries } = await ada.ask<{ entries: Row[] }>('journal', { run: answer.copy });
  expect(entries).toMatchObject([{ verb: 'edit', by: 'ada' }]);
  const viewer = await signIn(engine, 'vera', { role: 'viewer', payloads: true });
  expect(await viewer.refused('edit', { ...request, result: { score: 2 } })).toMatchObject({ code: '42501' });
  const blind = await signIn(engine, 'ben');
  expect(await blind.refused('edit', { ...request, result: { score: 2 } })).toMatchObject({ code: '42501' });
});

test('an edit on a copy that the form refuses, or that is out of date, makes no copy', async ({ engine }) => {
  const { id, ada, request } = await ranThrough(engine);
  expect((await ada.refused('edit', { ...request, result: { score: 'high' } })).code).toBe('MR002');
  await engine.queue('two', [id]);
  expect((await ada.refused('edit', { ...request, result: { score: 2 } })).code).toBe('MR004');
  expect(await engine.value('select count(*)::int from millrace.runs where copy_of is not null')).toBe(0);
});
