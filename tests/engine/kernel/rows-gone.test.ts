// Rows that go without the delete trigger: as a replica, or since their table was made anew. Their runs go with them.
import { expect } from 'vitest';
import { defineFamily, numbers, spawnAll, startFolders } from '../../support/engine/children.ts';
import { chain, type Engine, test } from '../../support/engine.ts';
import { openTransaction } from '../../support/sessions.ts';
import { completed, resume, runStage, Worker, waiting } from '../../support/worker.ts';

/** Deletes rows as replication does, whose statements fire no triggers. */
async function replicateDeletion(engine: Engine, ids: string[], table = 'public.items'): Promise<void> {
  const client = await engine.database.connect('supabase_admin');
  await client.query('set session_replication_role = replica');
  await client.query(`delete from ${table} where id = any ($1::bigint[])`, [ids]);
  await client.query('reset session_replication_role');
  engine.database.giveBack(client);
}

const counts = (engine: Engine) =>
  engine.rows(`select (select count(*)::int from millrace.runs) as runs,
    (select count(*)::int from millrace.attempts) as attempts, (select count(*)::int from millrace.claims) as claims`);

const told = (engine: Engine) => engine.rows(`select level, code, message from millrace.log where code = 'row_gone'`);

test('a report about a row that is gone is stale, of a row that is locked busy, and the others count', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one', 'two']));
  const ids = await engine.queued('one', 3);
  const worker = await Worker.of(engine, 'one');
  const batch = await worker.take();
  const holder = await openTransaction(engine);
  await holder.query('select from public.items where id = $1 for update', [ids[1]]);
  await replicateDeletion(engine, [ids[0] as string]);
  expect(await worker.report(...batch.map((item) => completed(item)))).toEqual(['stale', 'busy', 'accepted']);
  await holder.query('rollback');
  expect(await worker.report(completed(batch[1] ?? { attempt: 0, token: '' }))).toEqual(['accepted']);
  expect(await engine.attempts(ids[0])).toEqual([]);
  expect(await told(engine)).toEqual([
    {
      level: 'warning',
      code: 'row_gone',
      message: `Rows of pipeline flow went without its trigger: {${ids[0]}}`,
    },
  ]);
});

test('the row whose deletion is not committed yet is busy, and comes back when it is rolled back', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one']));
  await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  const held = await worker.takeOne();
  const deleter = await engine.database.connect('supabase_admin');
  await deleter.query('begin; set local session_replication_role = replica; delete from public.items');
  expect(await worker.report(completed(held))).toEqual(['busy']);
  await deleter.query('rollback');
  expect(await worker.report(completed(held))).toEqual(['accepted']);
});

test.for(['columns', 'none'])(
  'runs over a table made anew are handed to nobody, and those of rows that are there again are (%s)',
  async (projection, { engine }) => {
    await engine.pipeline(chain(['one'], { batch_size: 5 }), { projection });
    const start = (ids: string[]) =>
      engine.sql.query(`select millrace.start('flow', i) from unnest($1::text[]) i`, [ids]);
    const ids = await engine.insert(12);
    await start(ids);
    await engine.sql.query(`create table public.copy (like public.items including all);
      insert into public.copy select * from public.items where id <= 2;
      drop table public.items; alter table public.copy rename to items`);
    const worker = await Worker.of(engine, 'one');
    const handed: string[] = [];
    for (let calls = 0; calls < 4; calls += 1) {
      const { batch, status } = await worker.claim(5);
      expect(status).toBe(batch.length > 0 ? 'working' : 'empty');
      handed.push(...batch.map((item) => `${item.entity_id} ${item.entity.id}`));
      expect(await worker.report(...batch.map((item) => completed(item)))).toEqual(batch.map(() => 'accepted'));
    }
    expect(handed).toEqual(['1 1', '2 2']);
    expect(await worker.leave()).toMatchObject({ left: true });
    expect(await counts(engine)).toEqual([{ runs: 2, attempts: 2, claims: 0 }]);
  },
);

test('a repeated claim leaves out the rows that went meanwhile', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const ids = await engine.queued('one', 3);
  const worker = await Worker.of(engine, 'one');
  const batch = await worker.take();
  await replicateDeletion(engine, [ids[0] as string]);
  const again = await worker.claim(10, worker.seq);
  expect(again.batch.map((item) => item.attempt)).toEqual(batch.slice(1).map((item) => item.attempt));
  expect(await worker.report(...batch.map((item) => completed(item)))).toEqual(['stale', 'accepted', 'accepted']);
});

test('leases, deadlines and job ends of rows that are gone are over, and nothing is swept for ever', async ({
  engine,
}) => {
  await engine.pipeline([
    { name: 'plain' },
    { name: 'job', kind: 'external', completion: { callback: true, deadline_seconds: 60 } },
  ]);
  const [leased] = await engine.queued('plain');
  const [ended, late] = await engine.queued('job', 2);
  await (await Worker.of(engine, 'plain')).takeOne();
  const worker = await Worker.of(engine, 'job');
  const jobs = await worker.take();
  await worker.report(...jobs.map((item) => waiting(item, `job-${item.entity_id}`)));
  await replicateDeletion(engine, [leased, ended, late] as string[]);
  const end = { submission: jobs[0]?.submission, service: 'scraper', job_id: `job-${ended}`, outcome: 'completed' };
  expect((await resume(engine, [{ ...end, result: 1 }])).items).toMatchObject([{ verdict: 'stale' }]);
  await engine.advance('5 minutes');
  await engine.sweepAll();
  await engine.advance('2 minutes');
  await engine.sweepAll();
  expect(await counts(engine)).toEqual([{ runs: 0, attempts: 0, claims: 0 }]);
});

test('children of a parent that is gone are cancelled, and of a child that is gone the parent hears', async ({
  engine,
}) => {
  await defineFamily(engine);
  const [gone, other] = await startFolders(engine, 2);
  for (const _ of [gone, other]) await spawnAll(engine, numbers(1, 2));
  const files = await engine.rows<{ id: string; folder: string }>('select id, folder from public.items order by id');
  await replicateDeletion(engine, [gone as string], 'public.folders');
  const lost = files.find(({ folder }) => folder === other);
  await replicateDeletion(engine, [lost?.id as string]);
  await runStage(engine, 'scan', 'files');
  await runStage(engine, 'blend', 'files');
  await engine.sweepAll();
  expect(
    await engine.rows(`select r.entity_id, r.status from millrace.runs r
      join millrace.pipelines p on p.id = r.pipeline_id where p.name = 'folder'`),
  ).toEqual([{ entity_id: other, status: 'failed' }]);
  expect(await engine.value('select count(*)::int from millrace.fan_outs')).toBe(1);
});

test('a deleted row takes along the costs of its former runs and its entry in a bypass', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const [id] = await engine.queued('one');
  const held = await (await Worker.of(engine, 'one')).takeOne();
  await engine.sql.query(
    `insert into millrace.former_runs (pipeline_id, entity_id, run_id, trace_id, status, costs, created_at)
     select pipeline_id, entity_id, 0, gen_random_uuid(), 'completed', '{}', created_at from millrace.runs`,
  );
  await replicateDeletion(engine, [id as string]);
  await engine.advance('5 minutes');
  await engine.sweepAll();
  expect(held.entity_id).toBe(id);
  expect(await engine.rows('select * from millrace.former_runs')).toEqual([]);
});
