// doctor() names each pipeline that its table no longer leads to, and rows that nothing has begun; its remedies mend both.
import { expect } from 'vitest';
import { findingLines } from '../../../cli/project/read-health.ts';
import { sayFault } from '../../../supabase/functions/_millrace/alerts/say-alert.ts';
import { compilePipeline } from '../../../supabase/functions/_millrace/compile/compile-pipeline.ts';
import { inputOf } from '../../support/definitions.ts';
import { makeAdoption, makeNotes } from '../../support/engine/status.ts';
import { type Engine, test } from '../../support/engine.ts';
import { runStage } from '../../support/worker.ts';

/** The findings of doctor() about pipelines' tables. */
async function amiss(engine: Engine): Promise<string[]> {
  const rows = await engine.rows<{ detail: string }>(
    `select detail from millrace.doctor() where what ~ 'fits its table|^rows that show work' and not ok`,
  );
  return rows.map(({ detail }) => detail);
}

/** Runs the statement that a finding ends with. */
const mend = (engine: Engine, detail = '') => engine.sql.query(detail.replace(/^.*?(?=select millrace\.attach)/s, ''));

const losses: [string, string, string][] = [
  [
    'its triggers disabled',
    'alter table public.items disable trigger user',
    // In the order of their names, or an alert would take another order for news.
    ['deleted', 'inserted', 'key', 'truncated', 'updated']
      .map((name) => `trigger millrace_flow_${name} is disabled`)
      .join(', '),
  ],
  [
    'one trigger disabled',
    'alter table public.items disable trigger millrace_flow_updated',
    'trigger millrace_flow_updated is disabled: select',
  ],
  [
    'a trigger that fires at replicas alone',
    'alter table public.items enable replica trigger millrace_flow_inserted',
    'trigger millrace_flow_inserted is disabled: select',
  ],
  [
    'a trigger dropped',
    'drop trigger millrace_flow_key on public.items',
    'trigger millrace_flow_key is missing: select',
  ],
  ['a function dropped', 'drop function millrace.flow__sizes', 'function millrace.flow__sizes is missing: select'],
];
for (const [what, loss, said] of losses) {
  test(`doctor names a pipeline with ${what}, and its remedy brings back the whole`, async ({ engine }) => {
    await engine.pipeline([{ name: 'only' }]);
    await engine.pipeline([{ name: 'later' }], {}, 'beside');
    expect(await amiss(engine)).toEqual([]);
    await engine.sql.query(loss);
    const [found, ...more] = await amiss(engine);
    expect(found).toContain(said);
    for (const detail of [found, ...more]) await mend(engine, detail);
    expect(await amiss(engine)).toEqual([]);
    const [id] = await engine.insert(1);
    await engine.sql.query(`update public.items set only_status = 'queued'`);
    await runStage(engine, 'only');
    expect(await engine.statuses(id)).toMatchObject({ only: 'completed' });
  });
}

test('doctor names a former stage whose columns are gone while rows are still shown by them', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }, { name: 'former' }]);
  await engine.pipeline([{ name: 'only' }]);
  await engine.sql.query(`alter table public.items drop column former_status`);
  const [found] = await amiss(engine);
  expect(found).toBe(`columns of the former stage former are gone: select millrace.attach('flow')`);
  await mend(engine, found);
  expect(await amiss(engine)).toEqual([]);
  await engine.insert(1);
  await engine.sql.query(`update public.items set only_status = 'queued'`);
  await runStage(engine, 'only');
  expect(await engine.rows('select only_status from public.items')).toEqual([{ only_status: 'completed' }]);
});

test("doctor names an engine's column that was dropped, with the statements that bring it back", async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.sql.query('alter table public.items drop column only_retry_count');
  const [found = ''] = await amiss(engine);
  expect(found).toMatch(
    /^table public\.items has no column only_retry_count for stage only: select millrace\.add_columns\('public\.items', 'only'\); select millrace\.attach\('flow'\)$/,
  );
  await expect(engine.insert(1), 'a write names the column').rejects.toThrow(/only_retry_count.* does not exist/);
  // As an operator does: all that stands behind the colon, at once.
  await engine.sql.query(found.replace(/^.*?: /, ''));
  expect(await amiss(engine)).toEqual([]);
});

test('define and doctor compare the columns that inputs of stages require with those that the table has', async ({
  engine,
}) => {
  const definition = await engine.pipeline([{ name: 'only' }]);
  const requiring = (...only: string[]) => [JSON.stringify(compilePipeline({ input: inputOf(definition) }, { only }))];
  const define = 'select millrace.define($1)';
  expect(await engine.refusal(define, requiring('id', 'summary'))).toMatchObject({
    code: 'MR001',
    message: expect.stringContaining(
      'the input of stage only asks for $.entity.summary, which is no column of public.items',
    ),
    hint: expect.stringMatching(/^Correct the handler and sync again/),
  });
  expect((await engine.refusal(define, requiring('only_status'))).message).toMatch(
    /\.only_status, which the engine keeps for stage only/,
  );
  await engine.sql.query('alter table public.items add column summary text');
  await engine.sql.query(define, requiring('id', 'summary'));
  expect(await amiss(engine)).toEqual([]);
  await engine.sql.query('alter table public.items drop column summary');
  await engine.sql.query(`select millrace.attach('flow')`);
  expect(await amiss(engine)).toEqual([
    "table public.items has no column summary: add the column again as it was, then select millrace.attach('flow')",
  ]);
});

const anew = [
  `create table public.anew (like public.items including all);
    drop table public.items;
    alter table public.anew rename to items`,
  `alter table public.items rename to former;
    create table public.items (like public.former including all)`,
];
test('doctor names a table that was made anew, and its migration ties the new one', async ({ engine }) => {
  const definition = await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only', 1);
  for (const statements of anew) {
    await engine.sql.query(statements);
    const [found = ''] = await amiss(engine);
    expect(found).toContain(
      'its table public.items was dropped or made anew, its policies and grants gone: ' +
        'run the newest *_pipeline_flow.sql again by psql or the SQL editor, after: select millrace.cancel(id)',
    );
    const lines = findingLines([{ what: '', detail: found }], "npx supabase db query --remote='postgresql://h/d'");
    expect(lines.at(-2)).toMatch(/ or one statement a call by: npx supabase db query /);
    expect(lines.at(-1)).toMatch(/ by: psql -1 -v ON_ERROR_STOP=1 -f FILE 'postgresql:\/\/h\/d'$/);
    // A table that was only renamed can be attached.
    if (statements.includes('drop table')) {
      expect(await engine.refusal(`select millrace.attach('flow')`)).toMatchObject({
        code: 'MR004',
        message: `pipeline flow: ${found}`,
      });
    }
    await engine.sql.query(found.replace(/^.*?(?=select millrace\.cancel)/s, ''));
    await engine.define(definition);
    expect(await amiss(engine)).toEqual([]);
  }
});

test('doctor takes a table that was only renamed for the same', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.sql.query('alter table public.items rename to things');
  const [found] = await amiss(engine);
  expect(found).toMatch(/items.* does not exist/);
  await mend(engine, found);
  expect(await amiss(engine)).toEqual([]);
});

test('doctor names a status column that was dropped', async ({ engine }) => {
  await makeNotes(engine);
  const column = await engine.value<string>(`select status ->> 'column' from millrace.pipelines where name = 'notes'`);
  await engine.sql.query(`alter table public.note drop column ${column} cascade`);
  expect((await amiss(engine))[0]).toMatch(
    new RegExp(`^table public\\.note has no column ${column}.*add the column again.*millrace\\.attach\\('notes'\\)`),
  );
  expect(await engine.rows(`select detail from millrace.doctor() where what = 'no invariant is violated'`)).toEqual([
    { detail: `column e.${column} does not exist: the rules cannot be checked until this is mended` },
  ]);
  await engine.sql.query(`alter table public.note add column ${column} smallint; select millrace.attach('notes')`);
  expect(await amiss(engine)).toEqual([]);
});

test('doctor counts rows that show queued and never had a run, and the statement begins them', async ({ engine }) => {
  await engine.pipeline([{ name: 'first' }, { name: 'second', needs: ['first'] }]);
  await engine.queued('first', 2);
  await engine.sql.query(`
    alter table public.items disable trigger user;
    insert into public.items (label, first_status) select 'restored', 'queued' from generate_series(1, 3);
    insert into public.items (label, first_status, second_status) values ('further', 'completed', 'queued');
    alter table public.items enable trigger user`);
  const [found = '', ...more] = await amiss(engine);
  expect(more).toEqual([]);
  expect(found).toMatch(
    /^rows of flow that show first_status queued and have never had a run: 3 \(of the last 4000 by key\): select .*\. rows of flow that show second_status queued and have never had a run: 1 /,
  );
  const what = 'rows that show work as queued have a run';
  expect(sayFault({ kind: 'finding', what, detail: found })).toBe(
    `rows that show work as queued have no run: ${found}`,
  );
  const [line] = findingLines([{ what, detail: found }], '');
  expect(line).toBe('✗ rows that show work as queued have no run');
  for (const [statement] of found.matchAll(/select millrace\.start.*?(?= until it begins none)/g)) {
    await engine.sql.query(statement);
  }
  expect(await amiss(engine)).toEqual([]);
  expect(await engine.value(`select count(*)::int from millrace.runs where status = 'running'`)).toBe(6);
});

test('doctor says what begins a row that shows queued while its last run is over', async ({ engine }) => {
  await engine.pipeline([{ name: 'first' }, { name: 'second', needs: ['first'] }]);
  await engine.queued('first', 1);
  await runStage(engine, 'first');
  await runStage(engine, 'second');
  await engine.sql.query(`
    alter table public.items disable trigger user;
    update public.items set second_status = 'queued';
    alter table public.items enable trigger user`);
  const finding = () =>
    engine.rows<{ ok: boolean; detail: string }>(
      `select ok, detail from millrace.doctor() where what = 'no invariant is violated'`,
    );
  const [found] = await finding();
  expect(found?.detail).toMatch(
    /^a row that shows queued or started has a live run \(row 1 of public\.items, whose last run is completed: select millrace\.start\('flow', '1', 'second'\)\): /,
  );
  await engine.sql.query(/select millrace\.start\(.*?'\)/.exec(found?.detail ?? '')?.[0] ?? '');
  expect(await engine.statuses('1')).toEqual({ first: 'completed', second: 'queued' });
  expect(await finding()).toMatchObject([{ ok: true }]);
});

test('doctor counts rows that show the value by which a layer is entered and never had a run', async ({ engine }) => {
  await makeNotes(engine);
  await engine.sql.query(`
    alter table public.note disable trigger user;
    insert into public.note (label, status_code) values ('restored', 200);
    alter table public.note enable trigger user`);
  const [found = ''] = await amiss(engine);
  expect(found).toMatch(
    /^rows of notes that show 200 and have never had a run: 1 .*: push the migration of `npx millrace adopt`, then select millrace\.begin\('notes', '200', 1000\) until/,
  );
  await makeAdoption(engine);
  await engine.sql.query(`select millrace.begin('notes', '200', 1000)`);
  expect(await amiss(engine)).toEqual([]);
});
