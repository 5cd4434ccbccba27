import { expect } from 'vitest';
import { compiled } from '../../support/definitions.ts';
import { chain, test } from '../../support/engine.ts';
import { postgresMajor } from '../../support/postgres-major.ts';
import { begin, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { completed, failed, runStage, Worker } from '../../support/worker.ts';

test('defining the same again changes nothing', async ({ engine }) => {
  const definition = await engine.pipeline(chain(['one', 'two']));
  const state = () => engine.rows(`select * from millrace.stages s, millrace.version_stages v where v.stage_id = s.id`);
  const before = await state();
  expect(await engine.define(definition)).toBe(1);
  expect(await state()).toEqual(before);
  expect(await engine.value('select count(*)::int from millrace.versions')).toBe(
    await engine.value('select count(distinct pipeline_id)::int from millrace.versions'),
  );
});

test('a changed graph is a new version, changed settings are not', async ({ engine }) => {
  const definition = await engine.pipeline(chain(['one', 'two']));
  const [first, second] = definition.stages;
  expect(await engine.define({ ...definition, stages: [{ ...first, batch_size: 7 }, second] })).toBe(1);
  expect(await engine.define({ ...definition, stages: [second, first] })).toBe(1);
  expect(await engine.define({ ...definition, stages: [first, { ...second, needs: [] }] })).toBe(2);
});

test('a run finishes on the version it began with, and a claim hands that version over', async ({ engine }) => {
  const definition = await engine.pipeline(chain(['one', 'three']));
  const [old] = await engine.queued('one');
  await engine.addColumns('two');
  await engine.define({ ...definition, stages: chain(['one', 'two', 'three']) });
  const [young] = await engine.queued('one');
  const batch = await runStage(engine, 'one');
  expect(batch.map((item) => [item.entity_id, item.version])).toEqual([
    [old, 1],
    [young, 2],
  ]);
  expect(await engine.statuses(old)).toEqual({ one: 'completed', two: 'pending', three: 'queued' });
  expect(await engine.statuses(young)).toEqual({ one: 'completed', two: 'queued', three: 'pending' });
  expect(await runStage(engine, 'three')).toHaveLength(1);
  expect((await engine.run(old)).status).toBe('completed');
  await runStage(engine, 'two');
  await runStage(engine, 'three');
  expect((await engine.run(young)).status).toBe('completed');
});

test('a stage that live runs still need is not dropped: the error has their number and the remedy', async ({
  engine,
}) => {
  const definition = await engine.pipeline(chain(['one', 'two', 'three']));
  const [done] = await engine.queued('one');
  await runStage(engine, 'one');
  await runStage(engine, 'two');
  const [cancelled] = await engine.queued('one', 3);
  await engine.sql.query('select millrace.cancel($1)', [(await engine.run(cancelled)).id]);
  const shorter = { ...definition, stages: chain(['one', 'three']) };
  const refusal = await engine.refusedDefinition(shorter);
  // The first run has stage two behind it, the cancelled one will never come to it.
  expect(refusal).toMatchObject({ code: 'MR001', message: 'stage two is dropped, but 2 live runs still need it' });
  expect(refusal.hint).toMatch(/millrace\.cancel/);
  await runStage(engine, 'one');
  await runStage(engine, 'two');
  expect(await engine.define(shorter)).toBe(2);
  await runStage(engine, 'three');
  expect((await engine.run(done)).status).toBe('completed');
});

test('a dropped stage takes its columns with it, once the user drops them', async ({ engine }) => {
  const definition = await engine.pipeline(chain(['one', 'two', 'three']));
  await engine.define({ ...definition, stages: chain(['one', 'three']) });
  const columns = await engine.value<string[]>(`select millrace.stage_columns('two')`);
  await engine.sql.query(`alter table public.items ${columns.map((column) => `drop column ${column}`).join(', ')}`);
  await engine.sql.query(`select millrace.attach('flow')`);
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  await runStage(engine, 'three');
  expect(await engine.statuses(id)).toEqual({ one: 'completed', three: 'completed' });
});

test('limits, retry policy and on/off apply at once, to live runs too', async ({ engine }) => {
  const definition = await engine.pipeline(chain(['one'], { retry: { max_attempts: 5 }, batch_size: 3 }));
  await engine.queued('one', 2);
  const worker = await Worker.of(engine, 'one');
  const answer = await worker.claim(1);
  expect(answer).toMatchObject({ lease_ms: 60_000, stage: { batch_size: 3, timeout_ms: 30_000 } });
  const settings = { batch_size: 9, timeout_seconds: 12, lease_seconds: 20, retry: { max_attempts: 1 } };
  await engine.define({ ...definition, stages: chain(['one'], settings) });
  const next = await worker.complete(
    answer.batch.map((item) => failed(item)),
    1,
  );
  expect(next).toMatchObject({ lease_ms: 20_000, stage: { batch_size: 9, timeout_ms: 12_000 } });
  expect((await engine.run(answer.batch[0]?.entity_id)).status).toBe('failed');
  await engine.define({ ...definition, stages: chain(['one'], { enabled: false }) });
  const refused = await worker.complete(
    next.batch.map((item) => completed(item)),
    1,
  );
  expect(refused).toMatchObject({ status: 'refused', items: [{ verdict: 'accepted' }] });
  expect(refused.reason).toMatch(/switched off/);
});

test('a longer timeout becomes legal by raising worker_seconds', async ({ engine }) => {
  await engine.sql.query(`update millrace.settings set value = '190' where name = 'worker_seconds'`);
  await engine.pipeline(chain(['one'], { timeout_seconds: 180 }));
  const worker = await Worker.of(engine, 'one');
  expect((await worker.claim()).stage).toMatchObject({ timeout_ms: 180_000 });
});

test('queueing a stage that a live run of an older version does not have is refused by name', async ({ engine }) => {
  const definition = await engine.pipeline(chain(['one', 'three']));
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  await engine.addColumns('two');
  await engine.define({ ...definition, stages: chain(['one', 'two', 'three']) });
  const refusal = await engine.refusal(`update public.items set two_status = 'queued' where id = $1`, [id]);
  expect(refusal).toMatchObject({ code: 'MR005', message: expect.stringMatching(/two/) });
  expect(refusal.hint).toBeTruthy();
  expect((await engine.item(id)).two_status).toBe('pending');
});

test('starting over in a live run clears the columns of its own version’s dependents, no others', async ({
  engine,
}) => {
  const fan = [{ name: 'one' }, { name: 'two', needs: ['one'] }, { name: 'three', needs: ['one'] }];
  const definition = await engine.pipeline(fan);
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  await runStage(engine, 'three');
  await engine.define({ ...definition, stages: chain(['one', 'two', 'three']) });
  await (await Worker.of(engine, 'two')).takeOne();
  await engine.queue('two', [id ?? '']);
  await runStage(engine, 'two');
  expect((await engine.run(id)).status).toBe('completed');
  expect(await engine.item(id)).toMatchObject({
    three_status: 'completed',
    three_result: { stage: 'three', entity: id },
  });
});

test('a pipeline that moves to another table, or gives up its columns, leaves no trigger behind', async ({
  engine,
}) => {
  const definition = await engine.pipeline(chain(['one']));
  await engine.pipeline(chain(['one']), { table: 'public.others' });
  const [id] = await engine.queued('one');
  expect(await engine.value('select count(*)::int from millrace.runs')).toBe(0);
  expect((await engine.item(id)).one_status).toBe('queued');
  await engine.define({ ...definition, entity: { ...definition.entity, projection: 'none' } });
  await engine.sql.query(`update public.items set one_status = 'anything'`);
  expect(await engine.value('select count(*)::int from millrace.runs')).toBe(0);
});

test.for(['repeatable read', 'serializable'])(
  'attach() is refused in a transaction that is %s: it may not see a pipeline defined since',
  async (isolation, { engine }) => {
    await engine.pipeline(chain(['one']));
    const older = await openTransaction(engine, isolation);
    await older.query('select from millrace.pipelines');
    await engine.pipeline(chain(['uno']), { table: 'public.others' }, 'other');
    expect(await engine.refusal(`select millrace.attach('flow')`, [], older)).toMatchObject({
      code: 'MR004',
      message: `a pipeline cannot be attached in a transaction that is ${isolation}`,
    });
    await older.query('rollback');
    await engine.sql.query(`insert into public.others (uno_status) values ('queued')`);
    expect(await runStage(engine, 'uno', 'other')).toHaveLength(1);
  },
);

test('a pipeline that is not known is led to no other one', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const [id] = await engine.insert();
  for (const pipeline of [0, 9999, null]) {
    const statement = 'select millrace.lock_entities($1, $2, false)';
    expect(await engine.refusal(statement, [pipeline, [id]])).toMatchObject({ code: '2F005' });
  }
});

test('a migration that alters a table and defines its pipeline does so beside another definition', async ({
  engine,
}) => {
  const definition = compiled(await engine.pipeline(chain(['first'])));
  const altering = await openTransaction(engine);
  await altering.query('alter table public.items add column title text');
  const other = await engine.database.connect();
  const defined = begin(other.query('select millrace.define($1)', [definition]));
  await untilBlocked(engine, other);
  await altering.query('select millrace.define($1)', [definition]);
  await altering.query('commit');
  await defined;
});

test('a migration that adds columns and defines their stage does so beside a claim under limits', async ({
  engine,
}) => {
  const limits = { rate: { count: 100, per_seconds: 1 } };
  const definition = compiled(await engine.pipeline(chain(['first'], { limits })));
  const [id] = await engine.queued('first');
  const migration = await openTransaction(engine);
  await migration.query(`select millrace.add_columns('public.items', 'first')`);
  const worker = await engine.database.connect();
  const query = `select public.millrace_claim('flow', 'first', gen_random_uuid(), gen_random_uuid(), 1, 1)`;
  const claim = begin(worker.query(query));
  await untilBlocked(engine, worker);
  await migration.query('select millrace.define($1)', [definition]);
  await migration.query('commit');
  await claim;
  // On 15 that claim takes nothing, and the next one takes the row.
  if (postgresMajor < 16) await worker.query(query);
  expect(await engine.statuses(id)).toEqual({ first: 'started' });
});

test('a definition that waits for another one holds up neither it nor those who write', async ({ engine }) => {
  const [items, notes] = ['items', 'notes'].map((table) =>
    compiled({
      pipeline: table,
      entity: { table: `public.${table}`, key: 'id', projection: 'none' },
      stages: [{ name: 'first' }],
    }),
  );
  await engine.sql.query(
    'create table public.items (id int primary key); create table public.notes (id int primary key)',
  );
  const both = await openTransaction(engine);
  await both.query('select millrace.define($1)', [items]);
  const other = await engine.database.connect();
  const defined = begin(other.query('select millrace.define($1)', [notes]));
  await untilBlocked(engine, other);
  await engine.sql.query(`set lock_timeout = '1s'; insert into public.notes values (1); reset lock_timeout`);
  await both.query('select millrace.define($1)', [notes]);
  await both.query('commit');
  await defined;
});

test('of two pipelines that are defined at once for one status column, the second is refused', async ({ engine }) => {
  await engine.sql.query('create table public.items (id int primary key, state text)');
  const values = { work: { new: ['New'], doing: ['In work'] }, over: { done: ['Done'], failed: ['Failed'] } };
  const shown = (pipeline: string) =>
    compiled({
      pipeline,
      entity: {
        table: 'public.items',
        key: 'id',
        projection: 'status',
        status: { column: 'state', failed: 'failed', values },
      },
      stages: [{ name: 'first', shows: { queued: 'new', started: 'doing', completed: 'done' } }],
    });
  const first = await openTransaction(engine);
  await first.query('select millrace.define($1)', [shown('one')]);
  const second = await engine.database.connect();
  const defined = begin(second.query('select millrace.define($1)', [shown('two')]));
  await untilBlocked(engine, second);
  await first.query('commit');
  await expect(defined).rejects.toMatchObject({
    code: 'MR001',
    message: expect.stringContaining('entity.status.column: state shows pipeline one already'),
  });
});
