// A definition that is committed while runs of the former one are under way, or over: what it refuses, and what goes on.

import type pg from 'pg';
import { expect } from 'vitest';
import { compiled } from '../../support/definitions.ts';
import {
  collectChildren,
  defineFamily,
  endFiles,
  failFiles,
  folderStatuses,
  numbers,
  Spawner,
  startFolders,
  waitingFolder,
} from '../../support/engine/children.ts';
import { chain, type Definition, type Engine, type StageDefinition, test } from '../../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { failed, runStage, Worker } from '../../support/worker.ts';

const refusal = (engine: Engine, definition: unknown, client?: pg.Client) =>
  engine.refusedDefinition(definition, client);

/** Fails the stage of the next entity for good. */
async function failFor(engine: Engine, stage: string): Promise<void> {
  const worker = await Worker.of(engine, stage);
  await worker.complete([failed(await worker.takeOne(), { permanent: true })]);
  await worker.leave();
}

test('a stage ahead of a live run that becomes manual waits for a person when the run gets there', async ({
  engine,
}) => {
  const definition = await engine.pipeline(chain(['a', 'b', 'c']));
  const [id] = await engine.queued('a');
  const stages = [{ name: 'a' }, { name: 'b', needs: ['a'], kind: 'manual' }, { name: 'c', needs: ['b'] }];
  await engine.define({ ...definition, stages });
  await runStage(engine, 'a');
  expect(await engine.attempts(id)).toEqual(['a 1 completed', 'b 1 waiting']);
  expect(await engine.value('select count(*)::int from public.millrace_decisions where stage = $1', ['b'])).toBe(1);
});

/** Keeps whoever causes the event waiting until the answered session ends its transaction. */
async function holdBack(engine: Engine, event: string): Promise<pg.Client> {
  await engine.sql.query(`
    create table public.brake (id int primary key);
    insert into public.brake values (1);
    create function public.wait_for_brake() returns trigger language plpgsql security definer as $$
    begin perform from public.brake for update; return null; end $$;
    create trigger wait_for_brake ${event} for each statement execute function public.wait_for_brake()`);
  const brake = await openTransaction(engine);
  await brake.query('select from public.brake for update');
  return brake;
}

/** folder → a map without an insert function, whose items' keys are ids of rows of public.items or public.leaves. */
async function defineMap(engine: Engine, child: string): Promise<Definition> {
  const stages: StageDefinition[] = [
    { name: 'split', kind: 'map', child: { pipeline: child } },
    { name: 'publish', needs: ['split'] },
  ];
  return engine.pipeline(stages, { table: 'public.folders' }, 'folder');
}

test('a map keeps its child pipeline while live runs have it ahead of them or spawn', async ({ engine }) => {
  await engine.pipeline(chain(['scan']), {}, 'files');
  await engine.pipeline(chain(['leaf']), { table: 'public.leaves' }, 'leaves');
  const folder = await defineMap(engine, 'files');
  await engine.insert(2);
  await startFolders(engine);
  const stages = [
    { name: 'split', kind: 'map', child: { pipeline: 'leaves' } },
    { name: 'publish', needs: ['split'] },
  ];
  const refused = { code: 'MR001', message: expect.stringMatching(/split.*files.*1 live run/) };
  expect(await refusal(engine, { ...folder, stages })).toMatchObject(refused);
  const spawner = await Spawner.of(engine);
  await spawner.spawn(numbers(1, 1));
  expect(await refusal(engine, { ...folder, stages })).toMatchObject(refused);
  expect((await spawner.spawn(numbers(2, 2), true)).total).toBe(2);
});

test('a child pipeline stays at the table whose keys its parents go by', async ({ engine }) => {
  const child = await engine.pipeline(chain(['one']), {}, 'child');
  await engine.pipeline([{ name: 'inner', kind: 'pipeline', child: { pipeline: 'child' } }], {}, 'parent');
  await engine.sql.query('create table public.far (id bigint primary key)');
  const far = { table: 'public.far', key: 'id', projection: 'none' };
  expect(await refusal(engine, { ...child, entity: far })).toMatchObject({
    code: 'MR001',
    message: expect.stringMatching(/child.*far.*inner.*parent/),
  });
});

test('runs begin with the roots of their own version, and a definition waits until they have begun', async ({
  engine,
}) => {
  const files = await engine.pipeline(chain(['scan', 'blend']), { projection: 'none' }, 'files');
  await defineMap(engine, 'files');
  await engine.insert(2);
  await startFolders(engine);
  const spawner = await Spawner.of(engine);
  // The new runs are there, but their first stages have not begun yet.
  const brake = await holdBack(engine, 'after insert on millrace.runs');
  const spawning = begin(spawner.spawn(numbers(1, 2), true));
  await untilBlocked(engine, spawner.worker.client);
  const stages = [{ name: 'crop' }, { name: 'scan', needs: ['crop'] }, { name: 'blend', needs: ['scan'] }];
  const other = await engine.database.connect();
  const defining = begin(other.query('select millrace.define($1)', [compiled({ ...files, stages })]));
  await untilBlocked(engine, other);
  await brake.query('commit');
  expect((await spawning).status).toBe('spawned');
  await defining;
  await spawner.wait();
  const begun = await engine.rows(
    `select distinct s.name from millrace.attempts a join millrace.stages s on s.id = a.stage_id
     join millrace.runs r on r.id = a.run_id where r.fan_out_id is not null`,
  );
  expect(begun).toEqual([{ name: 'scan' }]);
});

test('a run that starts in the middle begins what its own version has beside that, whatever is defined meanwhile', async ({
  engine,
}) => {
  const definition = await engine.pipeline(chain(['a', 'b']));
  const [id] = await engine.queued('a');
  await runStage(engine, 'a');
  await runStage(engine, 'b');
  await engine.sql.query(`select millrace.add_columns('public.items', 'x')`);
  await engine.define({ ...definition, stages: chain(['x', 'a', 'b']) });
  const brake = await holdBack(engine, 'after insert on millrace.runs');
  const other = await engine.database.connect();
  const starting = begin(other.query(`select millrace.start('flow', $1, 'b')`, [id]));
  await untilBlocked(engine, other);
  await engine.define({ ...definition, stages: chain(['a', 'b', 'x']) });
  await brake.query('commit');
  await starting;
  expect((await engine.attempts(id)).slice(2)).toEqual(['a 1 completed', 'b 1 queued', 'x 1 queued']);
  await engine.expectSound();
});

test.for<[string, StageDefinition[], RegExp]>([
  ['drops a stage', [{ name: 'a' }, { name: 'c', needs: ['a'] }], /stage b/],
  [
    'makes a stage manual',
    [
      { name: 'a', kind: 'manual' },
      { name: 'b', needs: ['a'] },
      { name: 'c', needs: ['b'] },
    ],
    /stage a/,
  ],
])('a definition that %s sees the run of a user who was writing as it came', async ([, stages, named], { engine }) => {
  const definition = await engine.pipeline(chain(['a', 'b', 'c']));
  const [id] = await engine.insert();
  const user = await openTransaction(engine);
  await user.query(`update public.items set a_status = 'queued' where id = $1`, [id]);
  const other = await engine.database.connect();
  const defining = begin(refusal(engine, { ...definition, stages }, other));
  await untilBlocked(engine, other);
  await user.query('commit');
  expect(await defining).toMatchObject({ code: 'MR001', message: expect.stringMatching(named) });
});

test('without a projection too, a definition sees the run of a user who was starting it', async ({ engine }) => {
  const definition = await engine.pipeline(chain(['a', 'b', 'c']), { projection: 'none' });
  const [id] = await engine.insert();
  const user = await openTransaction(engine);
  await user.query(`select millrace.start('flow', $1)`, [id]);
  const other = await engine.database.connect();
  const stages = [{ name: 'a' }, { name: 'c', needs: ['a'] }];
  const defining = begin(refusal(engine, { ...definition, stages }, other));
  await untilBlocked(engine, other);
  await user.query('commit');
  expect(await defining).toMatchObject({ code: 'MR001', message: expect.stringContaining('stage b') });
});

test('a run that is over and goes on finishes on its version, and asks a person where a stage is manual now', async ({
  engine,
}) => {
  const definition = await engine.pipeline(chain(['a', 'b', 'c']));
  const [id] = await engine.queued('a');
  await runStage(engine, 'a');
  await failFor(engine, 'b');
  await engine.define({ ...definition, stages: [{ name: 'a' }, { name: 'c', needs: ['a'], kind: 'manual' }] });
  await engine.sql.query('select millrace.retry($1)', [(await engine.run(id)).id]);
  await runStage(engine, 'b');
  expect(await engine.attempts(id)).toEqual(['a 1 completed', 'b 1 failed', 'b 2 completed', 'c 1 waiting']);
});

test('a fan-in rule that is changed applies to what waits already', async ({ engine }) => {
  const { folder } = await waitingFolder(engine, 2);
  await defineFamily(engine, { split: { fan_in: { failed_children: 'ignore' } } });
  await failFiles(engine, [1]);
  await endFiles(engine, [2]);
  await collectChildren(engine);
  expect(await folderStatuses(engine, folder)).toEqual({ split: 'completed', publish: 'queued' });
});

test('a column of a wrong type is refused, with the columns as they should be', async ({ engine }) => {
  await engine.sql.query(
    'create table public.wrong (id bigint primary key, a_status text, a_job_id text, a_result text, a_error text, a_retry_count int, a_started_at timestamptz, a_completed_at timestamptz)',
  );
  const entity = { table: 'public.wrong', key: 'id', projection: 'columns' };
  const given = await refusal(engine, { pipeline: 'flow', entity, stages: [{ name: 'a' }] });
  expect(given).toMatchObject({
    code: 'MR001',
    message: 'column a_result of table public.wrong is of type text, but must be of type jsonb',
    hint: `Drop or rename the column, then: select millrace.add_columns('public.wrong', 'a');`,
  });
});

test('a child pipeline keeps the stage that a threshold of its parent counts', async ({ engine }) => {
  const beside = [{ name: 'peek', after: [{ map: 'split', stage: 'blend', count: 1 }] }];
  await defineFamily(engine, { beside });
  const entity = { table: 'public.items', key: 'id', projection: 'columns' };
  const files = { pipeline: 'files', entity, stages: chain(['scan', 'mix']) };
  for (const stage of ['mix', 'blend']) await engine.addColumns(stage);
  expect(await refusal(engine, files)).toEqual({
    code: 'MR001',
    message: 'stage blend is dropped, but stage peek of pipeline folder waits until children have done it',
    hint: expect.stringMatching(/^Keep stage blend until pipeline folder is defined without that threshold/),
  });
  await engine.define({ ...files, stages: chain(['scan', 'mix', 'blend']) });
  await defineFamily(engine, {
    files: chain(['scan', 'mix', 'blend']),
    beside: [{ name: 'peek', after: [{ map: 'split', stage: 'mix', count: 1 }] }],
  });
  expect(await engine.define(files)).toBe(3);
});
