// Maps over the real engine: tomes whose leaves are spawned by the runtime, read by the runtime, and joined by its collects.

import { expect } from 'vitest';
import { z } from 'zod';
import { definePipeline } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { defineMap, mapResult } from '../../supabase/functions/_millrace/stage/map-stage.ts';
import { defineStage } from '../../supabase/functions/_millrace/stage/stage.ts';
import { definitionOf } from '../support/definitions.ts';
import { type Engine, test } from '../support/engine.ts';
import { invoke } from '../support/runtime/real-drain.ts';

const worked = {
  batchSize: 10,
  maxWorkers: 2,
  leaseSeconds: 60,
  timeoutSeconds: 10,
  retry: { maxAttempts: 3, backoff: { kind: 'list' as const, seconds: [0] } },
};
const entity = { key: 'id', projection: 'none' as const };
const leaves = definePipeline({
  name: 'leaves',
  entity: { ...entity, table: 'public.leaves' },
  stages: { read: { kind: 'function', function: 'leaves-read', ...worked } },
});
const child = { pipeline: 'leaves', insert: 'public.insert_leaves' };
const tomeOf = (split: object = {}) =>
  definePipeline({
    name: 'tome',
    entity: { ...entity, table: 'public.tomes' },
    stages: {
      split: { kind: 'map', function: 'tome-split', ...worked, child, ...split },
      preview: {
        kind: 'function',
        function: 'tome-preview',
        ...worked,
        after: [{ map: 'split', stage: 'read', count: 2 }],
      },
      bind: { kind: 'function', function: 'tome-bind', ...worked, needs: ['split'] },
    },
  });
const tome = tomeOf();

const read = defineStage({
  pipeline: leaves,
  stage: 'read',
  input: z.object({ entity: z.object({ number: z.int() }) }),
  output: z.object({ words: z.int() }),
  handler: ({ entity: leaf }) => ({ words: leaf.number }),
});
const bind = defineStage({
  pipeline: tome,
  stage: 'bind',
  input: z.object({ needs: z.object({ split: mapResult }) }),
  output: z.object({ bound: z.int() }),
  handler: ({ needs }) => ({ bound: needs.split.completed }),
});

/** The map that gives each tome seven leaves, unless told otherwise, three in a chunk. */
const splitInto = (keys: (string | number)[] = [1, 2, 3, 4, 5, 6, 7], pipeline = tome) =>
  defineMap({
    pipeline,
    stage: 'split',
    input: z.object({ entity: z.object({ id: z.int() }) }),
    item: z.object({ key: z.union([z.int(), z.string()]) }),
    items: () => keys.map((key) => ({ key })),
    chunkSize: 3,
  });
const split = splitInto();

/** Defines both pipelines and starts the run of one tome; resolves to the run's number. */
async function startTome(engine: Engine, pipeline = tome): Promise<string> {
  await engine.sql.query(`
    create table public.tomes (id bigint generated always as identity primary key);
    create table public.leaves (id bigint generated always as identity primary key, tome bigint, number int, unique (tome, number));
    create function public.insert_leaves(p_parent text, p_items jsonb) returns table (item_key text, entity_id text)
    language sql as $$
      insert into public.leaves (tome, number) select p_parent::bigint, (i ->> 'key')::int from jsonb_array_elements(p_items) i
      on conflict do nothing;
      select l.number::text, l.id::text from public.leaves l
      where l.tome = p_parent::bigint and l.number in (select (i ->> 'key')::int from jsonb_array_elements(p_items) i)
    $$`);
  await engine.define(definitionOf(leaves));
  await engine.define(definitionOf(pipeline));
  return engine.value(`
    with tome as (insert into public.tomes default values returning id)
    select millrace.start('tome', id::text) from tome`);
}

const states = (engine: Engine) =>
  engine.rows(
    `select p.name || '.' || s.name as stage, a.state::text, count(*)::int as count
     from millrace.attempts a join millrace.stages s on s.id = a.stage_id join millrace.pipelines p on p.id = s.pipeline_id
     group by 1, 2 order by 1, 2`,
  );
const outputOf = (engine: Engine, stage: string) =>
  engine.value(
    `select a.output from millrace.attempts a join millrace.stages s on s.id = a.stage_id
     where s.name = $1 and a.output is not null and not a.superseded order by a.id desc`,
    [stage],
  );
const runStatus = (engine: Engine, run: string) =>
  engine.value('select status::text from millrace.runs where id = $1', [run]);

test('a map spawns its children in chunks and waits; who reads the last of them collects and wakes what follows', async ({
  engine,
}) => {
  const run = await startTome(engine);
  const spawning = await invoke(engine, split);
  expect(spawning.end).toBe('empty');
  expect(spawning.calls.filter(({ name }) => name === 'millrace_spawn')).toHaveLength(3);
  expect(spawning.woken).toContainEqual({ pipeline: 'leaves', stage: 'read', function: 'leaves-read' });
  expect(await engine.rows(`select service, job_id from millrace.attempts where state = 'waiting'`)).toEqual([
    { service: 'children', job_id: await engine.value('select id::text from millrace.fan_outs') },
  ]);

  const reading = await invoke(engine, read);
  expect(reading.calls.map(({ name }) => name)).toContain('millrace_collect_children');
  expect(reading.woken.map(({ stage }) => stage).sort()).toEqual(['bind', 'preview']);
  expect(await outputOf(engine, 'split')).toEqual({ total: 7, completed: 7, failed: 0, cancelled: 0 });

  await invoke(engine, bind);
  expect(await outputOf(engine, 'bind')).toEqual({ bound: 7 });
  expect(await runStatus(engine, run)).toBe('running');
  expect(await states(engine)).toContainEqual({ stage: 'tome.preview', state: 'queued', count: 1 });
});

test('a threshold is passed while other children still run', async ({ engine }) => {
  await startTome(engine);
  await invoke(engine, split);
  await engine.sql.query(`update millrace.stages set batch_size = 2 where name = 'read'`);
  let collected = 0;
  const few = { ...read, definition: { ...read.definition, batchSize: 2 } };
  const { woken } = await invoke(engine, few, (name, _, answer) => {
    if (name === 'millrace_collect_children' && answer) collected++;
    return collected > 0 && name === 'millrace_complete' && !answer;
  });
  expect(woken).toContainEqual({ pipeline: 'tome', stage: 'preview', function: 'tome-preview' });
  expect(await states(engine)).toContainEqual({ stage: 'tome.split', state: 'waiting', count: 1 });
});

test('a map without children is done at once', async ({ engine }) => {
  await startTome(engine);
  const { woken } = await invoke(engine, splitInto([]));
  expect(await outputOf(engine, 'split')).toEqual({ total: 0, completed: 0, failed: 0, cancelled: 0 });
  expect(woken.map(({ stage }) => stage).sort()).toEqual(['bind', 'preview']);
});

test.for([1, 2, 3])(
  'a function that dies after chunk %i leaves no child behind, none twice and none out',
  async (chunk, { engine }) => {
    await startTome(engine);
    let sent = 0;
    const { end } = await invoke(engine, split, (name, _, answer) => {
      if (name === 'millrace_spawn' && answer) sent++;
      return sent === chunk;
    });
    expect(end).toBe('dead');
    // The items that were spawned are read meanwhile; all there is cannot be all there will be.
    await invoke(engine, read);
    expect(await states(engine)).not.toContainEqual(expect.objectContaining({ stage: 'tome.bind' }));
    await engine.advance('61 seconds');
    expect(await engine.value('select millrace.sweep()')).toMatchObject({ leases: 1 });
    expect((await invoke(engine, split)).end).toBe('empty');
    await invoke(engine, read);
    expect(await engine.value('select count(*)::int from public.leaves')).toBe(7);
    expect(await states(engine)).toContainEqual({ stage: 'leaves.read', state: 'completed', count: 7 });
    expect(await outputOf(engine, 'split')).toEqual({ total: 7, completed: 7, failed: 0, cancelled: 0 });
  },
);

test('a run that is cancelled between two chunks ends its map quietly', async ({ engine }) => {
  const run = await startTome(engine);
  let sent = 0;
  const { end, calls, log } = await invoke(engine, split, async (name, _, answer) => {
    if (name === 'millrace_spawn' && answer && ++sent === 1) {
      await engine.sql.query('select millrace.cancel($1)', [run]);
    }
  });
  expect(end).toBe('empty');
  expect(calls.filter(({ name }) => name === 'millrace_spawn')).toHaveLength(2);
  expect(log.lines.filter((line) => !line.startsWith('drained'))).toEqual([]);
  expect(await runStatus(engine, run)).toBe('cancelled');
});

test('items without an insert function are rows that exist; one that somebody holds is waited for', async ({
  engine,
}) => {
  const pipeline = tomeOf({ child: { pipeline: 'leaves' } });
  await startTome(engine, pipeline);
  await engine.sql.query('insert into public.leaves (tome, number) select null, n from generate_series(1, 3) n');
  const user = await engine.database.connect();
  await user.query('begin');
  await user.query('select from public.leaves where id = 2 for update');
  const { calls } = await invoke(engine, splitInto([1, 2, 3], pipeline), async (name, _, answer) => {
    if (name === 'millrace_spawn' && answer) await user.query('commit');
  });
  const sent = calls.filter(({ name }) => name === 'millrace_spawn').map(({ args }) => args.p_items);
  expect(sent).toEqual([[{ key: 1 }, { key: 2 }, { key: 3 }], [{ key: 2 }]]);
  await invoke(engine, read);
  expect(await outputOf(engine, 'split')).toMatchObject({ total: 3, completed: 3 });
});

test('a row that does not exist fails the map for good, with the row’s name and the remedy', async ({ engine }) => {
  const pipeline = tomeOf({ child: { pipeline: 'leaves' } });
  const run = await startTome(engine, pipeline);
  await invoke(engine, splitInto([77], pipeline));
  expect(await engine.value('select error from millrace.attempts')).toMatchObject({
    code: 'children_refused',
    message: expect.stringMatching(/no row 77 .*Insert the rows first/),
  });
  expect(await runStatus(engine, run)).toBe('failed');
});

test('a parent that a user holds while its last child ends is collected as soon as it is let go', async ({
  engine,
}) => {
  await startTome(engine);
  // With columns to write, a collection of children needs the parent's row.
  await engine.addColumns('split', 'public.tomes');
  await engine.addColumns('preview', 'public.tomes');
  await engine.addColumns('bind', 'public.tomes');
  const projected = { ...definitionOf(tome), entity: { table: 'public.tomes', key: 'id', projection: 'columns' } };
  await engine.define(projected);
  await invoke(engine, split);
  const user = await engine.database.connect();
  await user.query('begin');
  await user.query('select from public.tomes for update');
  const { calls, log } = await invoke(engine, read, async (name, _, answer) => {
    if (name === 'millrace_collect_children' && (answer as { busy: number[] } | undefined)?.busy.length)
      await user.query('commit');
  });
  expect(calls.filter(({ name }) => name === 'millrace_collect_children').length).toBeGreaterThan(1);
  expect(log.lines.filter((line) => !line.startsWith('drained'))).toEqual([]);
  expect(await outputOf(engine, 'split')).toMatchObject({ completed: 7 });
});
