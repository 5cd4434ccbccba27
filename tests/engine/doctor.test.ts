import { expect } from 'vitest';
import { type Engine, test } from '../support/engine.ts';
import { Worker } from '../support/worker.ts';

/** What doctor() finds amiss, with its remedies. */
const amiss = (engine: Engine) =>
  engine.rows<{ what: string; detail: string }>('select what, detail from pipeline.doctor() where not ok');

async function healthy(engine: Engine): Promise<void> {
  await engine.configureDoorbell();
  await engine.pipeline([{ name: 'only' }]);
  await engine.sql.query('select pipeline.sweep()');
  expect(await amiss(engine)).toEqual([]);
}

test('doctor finds nothing amiss in a configured project whose sweep runs', async ({ engine }) => {
  await healthy(engine);
});

test('doctor tells of settings that are missing, with the statements that set them', async ({ engine }) => {
  await engine.sql.query('select pipeline.sweep()');
  expect(await amiss(engine)).toEqual([
    { what: 'project_url is set', detail: expect.stringContaining('vault.create_secret') },
    { what: 'secret_key is set', detail: expect.stringContaining('vault.create_secret') },
  ]);
});

test('doctor tells of a project URL that is none', async ({ engine }) => {
  await engine.configureDoorbell('localhost:8000');
  await engine.sql.query('select pipeline.sweep()');
  expect(await amiss(engine)).toEqual([{ what: 'project_url is set', detail: 'localhost:8000' }]);
});

test('doctor never shows the secret key', async ({ engine }) => {
  await engine.configureDoorbell('http://project.test', 'sb_secret_hush');
  expect(JSON.stringify(await engine.rows('select * from pipeline.doctor()'))).not.toContain('hush');
});

test('doctor tells of a sweep that stopped, and of schedules that are gone', async ({ engine }) => {
  await healthy(engine);
  await engine.advance('61 seconds');
  await engine.sql.query(`select cron.unschedule('millrace-prune')`);
  expect((await amiss(engine)).map((row) => row.what)).toEqual([
    'pg_cron job millrace-prune',
    'the sweep has run in the last minute',
  ]);
});

test('doctor tells of rings that the functions did not answer', async ({ engine }) => {
  await healthy(engine);
  const owner = await engine.database.connect('supabase_admin');
  const content = '{"error":{"code":"wrong_stage","message":"This function was rung for \\"two\\"."}}';
  await owner.query('insert into net._http_response (id, status_code, content) values (1, 202, null), (2, 401, $1)', [
    content,
  ]);
  const found = await amiss(engine);
  expect(found).toMatchObject([
    {
      what: 'the functions answered the last rings',
      detail: expect.stringContaining('401: This function was rung for'),
    },
  ]);
});

test('doctor tells of errors in the log for an hour', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only');
  await engine.configureDoorbell();
  await engine.sql.query('select pipeline.sweep()');
  expect(await amiss(engine)).toEqual([
    { what: 'no errors in the last hour', detail: 'The doorbell cannot ring: project_url or secret_key is not set' },
  ]);
  await engine.advance('61 minutes');
  await engine.sql.query('select pipeline.sweep()');
  expect((await amiss(engine)).map((row) => row.what)).not.toContain('no errors in the last hour');
});

test('doctor tells of ready work that nobody takes, and whose logs to read', async ({ engine }) => {
  await healthy(engine);
  await engine.queued('only');
  await engine.advance('59 seconds');
  await engine.sql.query('select pipeline.sweep()');
  expect(await amiss(engine)).toEqual([]);
  await engine.advance('2 seconds');
  await engine.sql.query('select pipeline.sweep()');
  expect(await amiss(engine)).toEqual([
    {
      what: 'ready work is taken within a minute',
      detail: 'stage only of flow waits since 2026-11-02 09:00:00: look at the logs of function flow-only',
    },
  ]);
  await (await Worker.of(engine, 'only')).claim(0);
  expect(await amiss(engine)).toEqual([]);
});

test('doctor tells of a violated invariant', async ({ engine }) => {
  await healthy(engine);
  await engine.queued('only');
  await engine.sql.query('begin');
  await engine.sql.query('delete from pipeline.attempts');
  expect(await amiss(engine)).toEqual([
    {
      what: 'no invariant is violated',
      detail: 'a running run owns a live attempt; a stage whose needs are done has begun',
    },
  ]);
  await engine.sql.query('rollback');
});
