// Runs are found by what people have in their hands.
import { expect } from 'vitest';
import { signIn } from '../../support/engine/operators.ts';
import { chain, type Engine, projectTest as test } from '../../support/engine.ts';
import { failed, Worker } from '../../support/worker.ts';

interface Found {
  run: number;
  entity: string;
  label?: string;
  status: string;
}

const search = async (engine: Engine, query: object) =>
  (await engine.value<{ runs: Found[] }>('select public.millrace_search($1)', [JSON.stringify(query)])).runs;

const find = async (engine: Engine, text: string, pipeline?: string) =>
  (await search(engine, { text, pipeline })).map(({ entity, label }) => `${entity} ${label}`);

/** A pipeline whose rows are known by their labels, with three of them queued. */
async function labelled(engine: Engine, index: string | null): Promise<string[]> {
  await engine.pipeline(chain(['first', 'second']), { label: 'label' });
  if (index) await engine.sql.query(`create index on public.items ${index}`);
  const ids = await engine.queued('first', 3);
  const names = ['https://a.test/one', 'https://a.test/two', '100%_off \\ here'];
  for (const [place, id] of ids.entries()) {
    await engine.sql.query('update public.items set label = $1 where id = $2', [names[place], id]);
  }
  return ids;
}

test('a run is found by its number, its trace, the key of its row and its label', async ({ engine }) => {
  const [one, two] = await labelled(engine, '(label text_pattern_ops)');
  const run = await engine.run(String(two));
  expect(await find(engine, String(run.id))).toContain(`${two} https://a.test/two`);
  const trace = await engine.value<string>('select trace_id::text from millrace.runs where id = $1', [run.id]);
  for (const written of [trace, trace.replaceAll('-', '')]) {
    expect(await find(engine, written)).toEqual([`${two} https://a.test/two`]);
  }
  expect(await find(engine, ` ${one} `)).toContainEqual(`${one} https://a.test/one`);
  expect(await find(engine, 'https://a.test/t')).toEqual([`${two} https://a.test/two`]);
  expect(await find(engine, 'https://a.test/')).toHaveLength(2);
  expect(await find(engine, 'https://a.test/', 'leads')).toEqual([]);
});

test('a text is looked for as it stands, whatever characters it has', async ({ engine }) => {
  const ids = await labelled(engine, '(label text_pattern_ops)');
  expect(await find(engine, '100%_off \\')).toEqual([`${ids[2]} 100%_off \\ here`]);
  for (const text of ['%', '_', '100__off', "'; drop table x --", '\u202e', '<b>', 'x'.repeat(500)]) {
    expect(await find(engine, text)).toEqual([]);
  }
});

test('an index of whole values finds the whole label', async ({ engine }) => {
  const ids = await labelled(engine, '(label)');
  expect(await find(engine, 'https://a.test/')).toEqual([]);
  expect(await find(engine, 'https://a.test/one')).toEqual([`${ids[0]} https://a.test/one`]);
});

test('without an index nothing is found by a label, and doctor says how to make one', async ({ engine }) => {
  const ids = await labelled(engine, null);
  expect(await find(engine, 'https://a.test/one')).toEqual([]);
  const finding = () =>
    engine.rows(`select ok, detail from millrace.doctor() where what like 'labels of pipeline flow%'`);
  const remedy = 'create index concurrently on public.items (label text_pattern_ops);';
  expect(await finding()).toEqual([{ ok: false, detail: `nothing is found by them: ${remedy}` }]);
  await engine.sql.query(remedy);
  expect(await finding()).toEqual([{ ok: true, detail: 'label, prefix' }]);
  expect(await find(engine, 'https://a.test/one')).toEqual([`${ids[0]} https://a.test/one`]);
});

interface Listed {
  runs: Found[];
  next: string | null;
}

/** The rows of the runs that a list finds by a text, in any case. */
const listed = async (engine: Engine, query: object) =>
  (await engine.value<Listed>('select public.millrace_runs($1)', [JSON.stringify(query)])).runs.map(
    ({ entity }) => entity,
  );

test('a list finds runs by a text anywhere in label, key, error or metadata, as it stands', async ({ engine }) => {
  const [one, two, three] = await labelledRows(engine);
  const worker = await Worker.of(engine, 'first');
  const items = await worker.take(3);
  const item = items.find(({ entity_id }) => entity_id === two) as (typeof items)[number];
  await worker.report(failed(item, { code: 'odd', message: 'The 5% tax_rate is gone', permanent: true }));
  for (const [text, rows] of [
    ['test/one', [one]],
    ['TEST/ONE', [one]],
    ['a.test', [two, one]],
    ['%_off', [three]],
    ['5% tax_rate', [two]],
    ['Grüner Weg', [one]],
    ['%', [three, two]],
    ["'; drop table millrace.runs --", []],
    ['$sql$', []],
    ['\\ here', [three]],
    ['5_ tax', []],
  ] as const) {
    expect({ text, rows: await listed(engine, { pipeline: 'flow', text }) }).toEqual({ text, rows });
  }
  expect(await listed(engine, { text: 'a.test', status: 'failed' })).toEqual([two]);
  expect(await listed(engine, { text: String(three), entity: String(three) })).toEqual([three]);
});

/** A pipeline with three rows with labels, one of them with metadata, queued at the first stage. */
async function labelledRows(engine: Engine): Promise<string[]> {
  await engine.sql.query(
    'create table public.items (id bigint generated by default as identity primary key, label text, meta jsonb)',
  );
  await engine.pipeline(chain(['first', 'second']), { label: 'label', metadata: 'meta' });
  const ids: string[] = [];
  for (const [label, meta] of [
    ['https://a.test/one', { street: 'Grüner Weg' }],
    ['https://a.test/two', {}],
    ['100%_off \\ here', {}],
  ] as const)
    ids.push(
      await engine.value<string>(
        `insert into public.items (label, meta, first_status) values ($1, $2, 'queued') returning id::text`,
        [label, JSON.stringify(meta)],
      ),
    );
  return ids;
}

test('metadata is searched for those alone who see payloads, and a bulk takes no text', async ({ engine }) => {
  const [one] = await labelledRows(engine);
  const [sees, blind] = [
    await signIn(engine, 'ann', { role: 'operator', payloads: true }),
    await signIn(engine, 'bob', { role: 'operator', payloads: false }),
  ];
  const of = async (who: typeof sees, text: string) =>
    (await who.ask<Listed>('runs', { text })).runs.map(({ entity }) => entity);
  expect(await of(sees, 'Weg')).toEqual([one]);
  expect(await of(blind, 'Weg')).toEqual([]);
  expect(await of(blind, 'test/one')).toEqual([one]);
  const preview = { verb: 'preview', do: { verb: 'cancel' }, filter: { pipeline: 'flow', text: 'Weg' } };
  expect(await engine.refusal('select public.millrace_act($1)', [JSON.stringify(preview)])).toMatchObject({
    code: 'MR002',
    message: expect.stringContaining('text'),
  });
});

test('a count says how many runs match, to 2,500, and whether there may be more', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second']), { label: 'label' });
  const count = (query: object) =>
    engine.value<{ count: number; next: string | null }>('select public.millrace_runs($1)', [
      JSON.stringify({ ...query, count: true }),
    ]);
  await engine.queued('first', 3);
  expect(await count({ pipeline: 'flow' })).toEqual({ count: 3, next: null });
  expect(await count({ pipeline: 'flow', status: 'failed' })).toEqual({ count: 0, next: null });
  await engine.sql.query(
    `insert into millrace.runs (pipeline_id, version_id, entity_id, status, created_at, finished_at)
     select p.id, p.current_version_id, 'x' || n, 'cancelled', millrace.now(), millrace.now() + n * interval '1 second'
     from generate_series(1, 2500) n, millrace.pipelines p where p.name = 'flow'`,
  );
  expect(await count({ status: 'cancelled' })).toEqual({ count: 2500, next: null });
  expect(await count({ pipeline: 'flow' })).toEqual({ count: 2500, next: expect.any(String) });
  // The look for a text ended after 2,500 runs, before the three.
  expect(await count({ text: 'x' })).toMatchObject({ count: 2500, next: expect.any(String) });
  expect(await count({ text: 'item' })).toMatchObject({ count: 0, next: expect.any(String) });
  await engine.sql.query(`delete from millrace.runs where status = 'cancelled'`);
});

test('the newest run of a row goes first, and the rows without a run are left out', async ({ engine }) => {
  const [id] = await labelled(engine, '(label text_pattern_ops)');
  await engine.sql.query('select millrace.cancel($1)', [(await engine.run(String(id))).id]);
  await engine.queue('first', [String(id)]);
  await engine.sql.query(`insert into public.items (label) values ('https://a.test/none')`);
  expect(await find(engine, 'https://a.test/none')).toEqual([]);
  const found = (await search(engine, { text: String(id) })).filter(({ entity }) => entity === String(id));
  expect(found.map(({ status }) => status)).toEqual(['running', 'cancelled']);
});

test('a search refuses a text or a pipeline that it can do nothing with', async ({ engine }) => {
  const refusal = (query: object) => engine.refusal('select public.millrace_search($1)', [JSON.stringify(query)]);
  expect(await find(engine, '  ')).toEqual([]);
  expect(await refusal({ text: 'x'.repeat(100_000) })).toMatchObject({ code: 'MR002' });
  expect(await refusal({ text: 'x', limit: 0 })).toMatchObject({ code: 'MR002' });
  expect(await refusal({ text: 'x', pipeline: 'nothing' })).toMatchObject({ code: 'MR003' });
});

test('a label must be a column of texts', async ({ engine }) => {
  for (const [label, why] of [
    ['id', 'of type bigint'],
    ['nothing', 'no column of public.items'],
  ]) {
    await engine.pipeline(chain(['only']));
    const entity = { table: 'public.items', key: 'id', projection: 'columns', label };
    const definition = { pipeline: 'flow', entity, stages: chain(['only']) };
    expect(await engine.refusedDefinition(definition)).toMatchObject({
      code: 'MR001',
      message: `entity.label is "${label}", which is ${why}`,
    });
  }
});
