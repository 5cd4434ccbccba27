// A stage whose named input is as before takes its former result: no claim, no model call, no cost.
import { expect } from 'vitest';
import { type Engine, each, type Row, type StageDefinition, test } from '../../support/engine.ts';
import { verb } from '../../support/operations.ts';
import { planRows } from '../../support/plan-rows.ts';
import { makeNotes, valuesOf } from '../../support/status.ts';
import { completed, failed, finish, runStage, Worker } from '../../support/worker.ts';

const stages = (options: Row = {}): StageDefinition[] => [
  { name: 'fetch' },
  { name: 'read', needs: ['fetch'], unchanged: '$.needs.fetch.print', ...options },
  { name: 'send', needs: ['read'] },
];
const page = (print: unknown) => ({ print, seen: Math.random() });

/** A row that has been read once, by what was fetched under `print`. */
async function readOnce(engine: Engine, print: unknown = 'a', options: Row = {}): Promise<string> {
  await engine.pipeline(stages(options));
  const [id] = await engine.queued('fetch');
  await finish(engine, 'fetch', page(print));
  await finish(engine, 'read', { title: 'first' });
  await runStage(engine, 'send');
  return id as string;
}

/** What the stage after it is given of the result, in a new run whose fetch comes to `print`; null where read has work first. */
async function fetchedAgain(engine: Engine, id: string, print: unknown): Promise<Row | null> {
  await engine.queue('fetch', [id]);
  await finish(engine, 'fetch', page(print));
  if ((await engine.statuses(id)).read === 'queued') return null;
  const [sent] = await runStage(engine, 'send');
  return sent?.needs ?? {};
}

test('over runs, the same input takes the former result, and the row shows it', async ({ engine }) => {
  const id = await readOnce(engine);
  expect(await fetchedAgain(engine, id, 'a')).toEqual({ read: { title: 'first' } });
  expect(await engine.item(id)).toMatchObject({ read_status: 'completed', read_result: { title: 'first' } });
  expect((await engine.run(id)).status).toBe('completed');
  expect(
    await engine.rows(`select service, output, usage, retry_count from millrace.attempts where service = 'unchanged'`),
  ).toEqual([{ service: 'unchanged', output: { title: 'first' }, usage: null, retry_count: 0 }]);
  // And once more: what was taken over is a former result too.
  expect(await fetchedAgain(engine, id, 'a')).toEqual({ read: { title: 'first' } });
});

test('within a run, what comes after a stage that is reset takes its former result', async ({ engine }) => {
  const id = await readOnce(engine);
  await verb(engine, 'reset', id, 'fetch');
  await finish(engine, 'fetch', page('a'));
  expect(await engine.attempts(id)).toEqual([
    'fetch 1 completed superseded',
    'read 1 completed superseded',
    'send 1 completed superseded',
    'fetch 2 completed',
    'read 2 completed',
    'send 2 queued',
  ]);
});

test('another input is worked, and is the former one from then on', async ({ engine }) => {
  const id = await readOnce(engine);
  expect(await fetchedAgain(engine, id, 'b')).toBeNull();
  await finish(engine, 'read', { title: 'second' });
  await runStage(engine, 'send');
  expect(await fetchedAgain(engine, id, 'b')).toEqual({ read: { title: 'second' } });
  // The last result counts, not any there ever was.
  expect(await fetchedAgain(engine, id, 'a')).toBeNull();
});

test('an input that is not there, or null, is never as before', async ({ engine }) => {
  const id = await readOnce(engine, null);
  expect(await fetchedAgain(engine, id, null)).toBeNull();
  await finish(engine, 'read', { title: 'second' });
  await runStage(engine, 'send');
  expect(await fetchedAgain(engine, id, undefined)).toBeNull();
});

test('a former attempt that failed leaves nothing to take, and its retry is worked', async ({ engine }) => {
  await engine.pipeline(stages({ retry: { max_attempts: 2, backoff: { kind: 'list', seconds: [0] } } }));
  const [id] = await engine.queued('fetch');
  await finish(engine, 'fetch', page('a'));
  const worker = await Worker.of(engine, 'read');
  for (let times = 0; times < 2; times++) await worker.report(failed(await worker.takeOne()));
  expect((await engine.run(id)).status).toBe('failed');
  expect(await fetchedAgain(engine, id as string, 'a')).toBeNull();
  await worker.report(failed(await worker.takeOne()));
  await finish(engine, 'read', { title: 'late' });
  await runStage(engine, 'send');
  expect(await fetchedAgain(engine, id as string, 'a')).toEqual({ read: { title: 'late' } });
});

test('a result that was made of another input than the stage began with is not taken', async ({ engine }) => {
  await engine.pipeline([{ name: 'read', unchanged: '$.entity.label' }]);
  const [id] = await engine.queued('read');
  const label = (text: string) => engine.sql.query('update public.items set label = $1', [text]);
  await label('changed while it was queued');
  await finish(engine, 'read', { title: 'of the changed one' });
  await label('item 1');
  await engine.queue('read', [id as string]);
  expect(await engine.statuses(id)).toEqual({ read: 'queued' });
  await finish(engine, 'read', { title: 'of the first' });
  await engine.queue('read', [id as string]);
  expect(await engine.item(id)).toMatchObject({ read_status: 'completed', read_result: { title: 'of the first' } });
});

test('a former run that was pruned is worked anew', async ({ engine }) => {
  const id = await readOnce(engine);
  await engine.advance('400 days');
  await engine.sql.query('select millrace.prune()');
  expect(await engine.rows('select * from millrace.runs')).toEqual([]);
  expect(await fetchedAgain(engine, id, 'a')).toBeNull();
});

test('whoever names the stage wants it done again: by start, by its column, by reset', async ({ engine }) => {
  const id = await readOnce(engine);
  const worked = async () => {
    expect(await runStage(engine, 'read')).toHaveLength(1);
    await runStage(engine, 'send');
  };
  await engine.value(`select millrace.start('flow', $1, 'read')`, [id]);
  await worked();
  await engine.queue('read', [id]);
  await worked();
  await verb(engine, 'reset', id, 'read');
  await worked();
  // Reset as a whole, it comes to the stage by itself.
  await verb(engine, 'reset', id);
  await finish(engine, 'fetch', page('a'));
  expect(await engine.statuses(id)).toEqual({ fetch: 'completed', read: 'completed', send: 'queued' });
});

test('a failed stage that is retried by hand is worked', async ({ engine }) => {
  const id = await readOnce(engine);
  await fetchedAgain(engine, id, 'b');
  const worker = await Worker.of(engine, 'read');
  await worker.report(failed(await worker.takeOne(), { permanent: true }));
  await verb(engine, 'retry', id);
  expect(await runStage(engine, 'read')).toHaveLength(1);
});

test('what was copied into a run that began later still tells of its input', async ({ engine }) => {
  const id = await readOnce(engine);
  await engine.queue('send', [id]);
  await runStage(engine, 'send');
  expect(await fetchedAgain(engine, id, 'a')).toEqual({ read: { title: 'first' } });
});

test('no usage is counted twice, and the figures tell such results as copied', async ({ engine }) => {
  await engine.pipeline(stages());
  const [id] = await engine.queued('fetch');
  await finish(engine, 'fetch', page('a'));
  const worker = await Worker.of(engine, 'read');
  const item = await worker.takeOne();
  await worker.report({ ...completed(item), usage: { cost_usd: 0.5, input_tokens: 100 } });
  await runStage(engine, 'send');
  expect(await fetchedAgain(engine, id as string, 'a')).not.toBeNull();
  await engine.sql.query('select millrace.sweep()');
  expect(
    await engine.rows(
      `select t.outcome, t.n::int, t.cost_usd::float, t.input_tokens::int from millrace.sums t
       join millrace.stages s on s.id = t.stage_id and s.name = 'read'
       join millrace.pipelines p on p.id = s.pipeline_id and p.name = 'flow'
       where t.unit = 'total' and t.outcome in ('completed', 'copied') order by t.outcome`,
    ),
  ).toEqual([
    { outcome: 'completed', n: 1, cost_usd: 0.5, input_tokens: 100 },
    { outcome: 'copied', n: 1, cost_usd: 0, input_tokens: 0 },
  ]);
});

test('the apply function is not called again: what it wrote at the time stands', async ({ engine }) => {
  await engine.sql.query(`
    create table public.applied (at int generated always as identity, result jsonb);
    create function public.keep(p_items jsonb) returns void language sql as
      $$ insert into public.applied (result) select i -> 'result' from jsonb_array_elements(p_items) i $$`);
  const id = await readOnce(engine, 'a', { apply: 'public.keep' });
  expect(await fetchedAgain(engine, id, 'a')).not.toBeNull();
  expect(await engine.rows('select result from public.applied')).toEqual([{ result: { title: 'first' } }]);
});

test('a result that ends its run ends this one too', async ({ engine }) => {
  const id = await readOnce(engine, 'a', { ends: [{ name: 'known', when: '$.result.title == "first"' }] });
  expect(await engine.statuses(id)).toEqual({ fetch: 'completed', read: 'completed', send: 'skipped' });
  await engine.queue('fetch', [id]);
  await finish(engine, 'fetch', page('a'));
  expect(await engine.rows('select status, ended_as from millrace.runs order by id')).toEqual([
    { status: 'completed', ended_as: 'known' },
    { status: 'completed', ended_as: 'known' },
  ]);
});

test('a result of null is a result', async ({ engine }) => {
  await engine.pipeline(stages());
  const [id] = await engine.queued('fetch');
  await finish(engine, 'fetch', page('a'));
  await finish(engine, 'read', null);
  await runStage(engine, 'send');
  expect(await fetchedAgain(engine, id as string, 'a')).toEqual({ read: null });
});

test('a condition is asked first, and rows of one batch go their own ways', async ({ engine }) => {
  await engine.pipeline(stages({ when: '$.entity.label != "no"' }));
  const ids = await engine.queued('fetch', 3);
  const fetchAll = async (prints: string[]) => {
    const worker = await Worker.of(engine, 'fetch');
    const batch = await worker.take();
    await worker.complete(batch.map((item, at) => completed(item, page(prints[at]))));
  };
  await fetchAll(['a', 'b', 'c']);
  await runStage(engine, 'read');
  await runStage(engine, 'send');
  await engine.sql.query(`update public.items set label = 'no' where id = $1`, [ids[0]]);
  await engine.queue('fetch', ids);
  await fetchAll(['a', 'b', 'other']);
  expect((await each(ids, (id) => engine.item(id))).map((row) => row.read_status)).toEqual([
    'skipped',
    'completed',
    'queued',
  ]);
});

test('a status column passes every value, as if the stage had worked', async ({ engine }) => {
  await makeNotes(engine, (definition) => {
    Object.assign(definition.stages[2] ?? {}, { unchanged: '$.entity.title' });
  });
  const id = await engine.value<string>(
    `insert into public.note (label, title, status_code) values ('manual', 'A', 110) returning id::text`,
  );
  for (const stage of ['fetch', 'summarize', 'tag']) await runStage(engine, stage, 'notes');
  expect((await engine.run(id)).status).toBe('running');
  await engine.value(`select millrace.reset(millrace.run_of('notes', $1), 'fetch')`, [id]);
  const before = (await valuesOf(engine, id)).length;
  await runStage(engine, 'fetch', 'notes');
  expect((await valuesOf(engine, id)).slice(before)).toEqual([111, 112, 200, 210, 211, 212, 220]);
  expect(await runStage(engine, 'summarize', 'notes')).toEqual([]);
});

test('an input that a definition cannot name is refused with the remedy', async ({ engine }) => {
  await engine.pipeline(stages());
  const refused = (unchanged: string, kind: Row = {}) =>
    engine.refusedDefinition({
      pipeline: 'flow',
      entity: { table: 'public.items', key: 'id', projection: 'columns' },
      stages: stages({ unchanged, ...kind }),
    });
  expect((await refused('$.needs.fech.print')).message).toContain('asks for the result of fech');
  expect((await refused('$.entity.lable')).message).toContain(
    'asks for $.entity.lable, which is no column of public.items',
  );
  expect((await refused('$.entity.read_result')).message).toContain('which the engine keeps for stage read');
  expect((await refused('$.entity.')).message).toContain('unchanged is "$.entity.", but must be a jsonpath (');
  expect((await refused('$x.entity')).message).toContain('must be a jsonpath without variables');
  expect((await refused('"a"')).message).toContain('write a path into its row or its needs');
  expect((await refused('$.needs.fetch', { kind: 'manual' })).code).toBe('MR001');
});

test('what it looks at does not grow with the runs that its row has had, nor with those of others', async ({
  engine,
}) => {
  const id = await readOnce(engine);
  const again = () =>
    planRows(
      engine.database.superUrl,
      `update public.items set fetch_status = 'queued' where id = ${id};
       select millrace.complete_stage(max(id), 'fetch', '{"print": "a"}') from millrace.runs;
       select millrace.cancel(max(id)) from millrace.runs`,
    );
  await engine.sql.query('vacuum analyze millrace.runs, millrace.attempts');
  const few = await again();
  for (let times = 0; times < 30; times++) {
    await engine.sql.query(`update public.items set fetch_status = 'queued' where id = ${id}`);
    await engine.sql.query(`select millrace.complete_stage(max(id), 'fetch', '{"print": "a"}') from millrace.runs`);
    await engine.sql.query('select millrace.cancel(max(id)) from millrace.runs');
  }
  await engine.queued('fetch', 500);
  await engine.sql.query('vacuum analyze millrace.runs, millrace.attempts');
  const many = await again();
  expect(await engine.value(`select count(*)::int from millrace.attempts where service = 'unchanged'`)).toBe(32);
  expect(many).toBeLessThan(few * 2);
});

test('what another path found is another input, as is what another apply function wrote', async ({ engine }) => {
  const two = (options: Row) => stages(options).slice(0, 2);
  const definition = await engine.pipeline(two({}));
  const [id] = (await engine.queued('fetch')) as [string];
  await finish(engine, 'fetch', { print: 'a', other: 'b' });
  await finish(engine, 'read', { title: 'first' });
  const fetchedUnder = async (options: Row, fetched: Row) => {
    await engine.define({ ...definition, stages: two(options) });
    await engine.queue('fetch', [id]);
    await finish(engine, 'fetch', fetched);
    return (await engine.statuses(id)).read;
  };
  expect(await fetchedUnder({ unchanged: '$.needs.fetch.other' }, { print: 'b', other: 'a' })).toBe('queued');
  await finish(engine, 'read', { title: 'second' });
  await engine.sql.query(`create function public.note_titles(p_items jsonb) returns void language sql as 'select'`);
  const applied = { unchanged: '$.needs.fetch.other', apply: 'public.note_titles' };
  expect(await fetchedUnder(applied, { other: 'a' })).toBe('queued');
  await finish(engine, 'read', { title: 'third' });
  expect(await fetchedUnder(applied, { other: 'a' })).toBe('completed');
});
