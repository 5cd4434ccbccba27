// Runs are found by what people have in their hands.
import { expect } from 'vitest';
import { chain, type Engine, projectTest as test } from '../../support/engine.ts';

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
