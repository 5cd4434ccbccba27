import { expect } from 'vitest';
import { chain, test } from '../../support/engine.ts';
import { completed, runStage, Worker } from '../../support/worker.ts';

/** The messages of the engine about itself. */
const itself = {
  'x-millrace-level': expect.stringMatching(/^\d+$/),
  'x-millrace-contracts': expect.stringMatching(/^\d+(,\d+)?$/),
};

test('a bulk update of many rows is one wake, which carries no work', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  await engine.configureWakeUps('http://project.test/', 'wake_secret_test');
  await engine.queued('one', 2000);
  expect(await engine.wakes()).toEqual([
    {
      url: 'http://project.test/functions/v1/flow-one',
      body: { pipeline: 'flow', stage: 'one' },
      headers: { ...itself, 'Content-Type': 'application/json', 'x-millrace-wake-secret': 'wake_secret_test' },
    },
  ]);
  expect(await engine.value(`select count(*)::int from millrace.attempts where state = 'queued'`)).toBe(2000);
});

test('a stage wakes again only when its last wake is two seconds old', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await engine.configureWakeUps();
  await engine.queued('one');
  await engine.advance('1.9 seconds');
  await engine.queued('one');
  expect(await engine.wakes()).toHaveLength(1);
  await engine.advance('0.2 seconds');
  await engine.queued('one');
  expect(await engine.wakes()).toHaveLength(2);
});

test('a rolled-back update wakes nobody', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await engine.configureWakeUps();
  const ids = await engine.insert();
  await engine.sql.query('begin');
  await engine.queue('one', ids);
  await engine.sql.query('rollback');
  expect(await engine.wakes()).toEqual([]);
});

test('a stage that is switched off takes work in and wakes for it once it is on again', async ({ engine }) => {
  const definition = await engine.pipeline(chain(['one'], { enabled: false }));
  await engine.configureWakeUps();
  const [id] = await engine.queued('one');
  expect(await engine.attempts(id)).toEqual(['one 1 queued']);
  expect(await engine.wakes()).toEqual([]);
  await engine.define({ ...definition, stages: chain(['one'], { enabled: true }) });
  await engine.sql.query('select millrace.sweep()');
  expect(await engine.wakes()).toHaveLength(1);
});

test('a missing secret never fails a user’s write: it is reported once a minute in the log and by doctor', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one']));
  await engine.queued('one', 3);
  await engine.advance('10 seconds');
  await engine.queued('one');
  const log = () => engine.rows('select level, code, message, detail from millrace.log');
  expect(await log()).toEqual([
    {
      level: 'error',
      code: 'wake_up_not_configured',
      message: expect.stringMatching(/project_url or wake_secret is not set/),
      detail: { hint: expect.stringMatching(/npx millrace connect/) },
    },
  ]);
  await engine.advance('2 minutes');
  await engine.queued('one');
  expect(await log()).toHaveLength(2);
  const ill = await engine.rows(`select what, detail from millrace.doctor() where not ok and what like '% is set'`);
  expect(ill.map((line) => line.what)).toEqual(['project_url is set', 'wake_secret is set']);
  expect(ill[0]?.detail).toMatch(/npx millrace connect/);
  expect(await runStage(engine, 'one')).toHaveLength(5);
});

test('the secret key wakes until a wake-up secret is set, and is never sent from then on', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await engine.sql.query(`select vault.create_secret('http://project.test', 'millrace_project_url')`);
  await engine.sql.query(`select vault.create_secret('sb_secret_whole', 'millrace_secret_key')`);
  await engine.queued('one');
  await engine.sql.query(`select vault.create_secret('wake', 'millrace_wake_secret')`);
  await engine.advance('3 seconds');
  await engine.queued('one');
  expect((await engine.wakes()).map(({ headers }) => headers)).toEqual([
    { ...itself, 'Content-Type': 'application/json', apikey: 'sb_secret_whole' },
    { ...itself, 'Content-Type': 'application/json', 'x-millrace-wake-secret': 'wake' },
  ]);
  expect(await engine.rows('select * from millrace.log')).toEqual([]);
});

test.for(['no url at all', '', 'ftp://project.test', 'http://'])(
  'a bad project_url (%j) never fails a user’s write',
  async (url, { engine }) => {
    await engine.pipeline(chain(['one', 'two']));
    await engine.configureWakeUps(url);
    const [id] = await engine.queued('one');
    const worker = await Worker.of(engine, 'one');
    expect(await worker.report(completed(await worker.takeOne()))).toEqual(['accepted']);
    expect(await engine.statuses(id)).toEqual({ one: 'completed', two: 'queued' });
    const [line] = await engine.rows(`select ok from millrace.doctor() where what = 'project_url is set'`);
    expect(line?.ok).toBe(false);
  },
);

test('a wake-up that pg_net refuses is reported, never raised', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await engine.configureWakeUps();
  const owner = await engine.database.connect('supabase_admin');
  await owner.query(`alter table net.http_request_queue add constraint broken check (url is null)`);
  const [id] = await engine.queued('one');
  expect(await engine.attempts(id)).toEqual(['one 1 queued']);
  expect(await engine.rows('select code from millrace.log')).toEqual([{ code: 'wake_up_failed' }]);
});

test('a secret in Vault goes before the row in millrace.settings, which serves where there is no secret', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one']));
  await engine.sql.query(
    `insert into millrace.settings (name, value) values ('project_url', 'http://table.test'), ('wake_secret', 'table')`,
  );
  await engine.queued('one');
  await engine.configureWakeUps('http://vault.test', 'vault');
  await engine.advance('3 seconds');
  await engine.queued('one');
  expect((await engine.wakes()).map((wake) => [wake.url, wake.headers['x-millrace-wake-secret']])).toEqual([
    ['http://table.test/functions/v1/flow-one', 'table'],
    ['http://vault.test/functions/v1/flow-one', 'vault'],
  ]);
});
