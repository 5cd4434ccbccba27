import { expect } from 'vitest';
import { planRows } from '../../support/engine/plan-rows.ts';
import { chain, type Engine, findingsTest as test } from '../../support/engine.ts';
import { Worker } from '../../support/worker.ts';

/** The faults that doctor() finds, with its remedies. */
const amiss = (engine: Engine) =>
  engine.rows<{ what: string; detail: string }>('select what, detail from millrace.doctor() where not ok');

/** pg_net's worker as other sessions see it. */
async function showNetWorker(engine: Engine): Promise<void> {
  const worker = await engine.database.connect('supabase_admin');
  await worker.query(`set application_name = 'pg_net 0.20.4'`);
}

async function healthy(engine: Engine): Promise<void> {
  await showNetWorker(engine);
  await engine.configureWakeUps();
  await engine.pipeline([{ name: 'only' }]);
  await engine.sql.query('revoke all on public.items from anon, authenticated');
  await engine.sql.query('select millrace.sweep()');
  expect(await amiss(engine)).toEqual([]);
}

test('doctor finds nothing amiss in a configured project whose sweep runs', async ({ engine }) => {
  await healthy(engine);
});

test('doctor gives an engine that has just been installed a minute for its first sweep', async ({ engine }) => {
  await healthy(engine);
  await engine.sql.query(`update millrace.settings set value = '-infinity' where name = 'last_sweep_at'`);
  await engine.sql.query('update millrace.releases set installed_at = millrace.now()');
  await engine.advance('59 seconds');
  expect(await amiss(engine)).toEqual([]);
  await engine.advance('2 seconds');
  expect((await amiss(engine)).map(({ detail }) => detail)).toEqual([
    expect.stringMatching(/^never; it is due every ten seconds: cron\.job_run_details/),
  ]);
});

test('doctor tells of settings that are missing, with the statements that set them', async ({ engine }) => {
  await showNetWorker(engine);
  await engine.sql.query('select millrace.sweep()');
  expect(await amiss(engine)).toEqual([
    { what: 'project_url is set', detail: 'missing: npx millrace connect writes it' },
    { what: 'wake_secret is set', detail: 'missing: npx millrace connect writes it' },
  ]);
});

test('doctor tells of a project URL that is none', async ({ engine }) => {
  await showNetWorker(engine);
  await engine.configureWakeUps('localhost:8000');
  await engine.sql.query('select millrace.sweep()');
  expect(await amiss(engine)).toEqual([
    { what: 'project_url is set', detail: expect.stringMatching(/^localhost:8000 is none: npx millrace connect/) },
  ]);
});

test('doctor tells of wake-ups that show the secret key, which any SQL role can read', async ({ engine }) => {
  await showNetWorker(engine);
  await engine.configureWakeUps();
  await engine.sql.query(`delete from vault.secrets where name = 'millrace_wake_secret'`);
  await engine.sql.query(`select vault.create_secret('sb_secret_hush', 'millrace_secret_key')`);
  await engine.sql.query('select millrace.sweep()');
  expect(await amiss(engine)).toEqual([
    {
      what: 'wake_secret is set',
      detail: expect.stringMatching(/^wake-ups show secret_key.*npx millrace connect/),
    },
  ]);
  expect(JSON.stringify(await engine.rows('select * from millrace.doctor()'))).not.toContain('hush');
});

test('doctor never shows the wake-up secret', async ({ engine }) => {
  await engine.configureWakeUps('http://project.test', 'wake_hush');
  expect(JSON.stringify(await engine.rows('select * from millrace.doctor()'))).not.toContain('hush');
});

test('doctor tells of a sweep that stopped, and of schedules that are gone', async ({ engine }) => {
  await healthy(engine);
  await engine.advance('61 seconds');
  await engine.sql.query(`select cron.unschedule('millrace-prune')`);
  const found = await amiss(engine);
  expect(found.map((row) => row.what)).toEqual(['the sweep has run in the last minute', 'pg_cron job millrace-prune']);
  const remedy = found[1]?.detail.replace('missing: ', '') ?? '';
  expect(remedy).toBe("select cron.schedule('millrace-prune', '17 3 * * *', 'select millrace.prune()')");
  await engine.sql.query(remedy);
  expect((await amiss(engine)).map((row) => row.what)).toEqual(['the sweep has run in the last minute']);
});

test('doctor tells of a job whose last run failed, with what pg_cron says of it and what helps', async ({ engine }) => {
  await healthy(engine);
  const owner = await engine.database.connect('supabase_admin');
  const ran = (status: string, message: string | null) =>
    owner.query(
      `insert into cron.job_run_details (jobid, command, status, return_message)
       select jobid, command, $1, $2 from cron.job where jobname = 'millrace-sweep'`,
      [status, message],
    );
  await ran('failed', 'connection failed');
  await ran('starting', null);
  const finding = { what: 'pg_cron job millrace-sweep' };
  expect(await amiss(engine)).toEqual([
    { ...finding, detail: expect.stringMatching(/^its last run failed: connection failed\. .*cron\.host/) },
  ]);
  const command = await engine.value(`select command from millrace.schedules where name = 'millrace-sweep'`);
  await ran(
    'failed',
    'ERROR:  function millrace.sweep_next() does not exist\nLINE 1: select\n        ^\nHINT:  No function.\n',
  );
  expect(await amiss(engine)).toEqual([
    {
      ...finding,
      detail:
        'its last run failed: ERROR:  function millrace.sweep_next() does not exist. ' +
        `To see more, run it by hand: ${command}`,
    },
  ]);
  await ran('succeeded', 'DO');
  expect(await amiss(engine)).toEqual([]);
  await owner.query(`select cron.alter_job(jobid, active := false) from cron.job where jobname = 'millrace-sweep'`);
  const [off] = await amiss(engine);
  expect(off).toMatchObject({ ...finding, detail: expect.stringMatching(/^switched off: select cron\.alter_job/) });
  await engine.sql.query(off?.detail.replace('switched off: ', '') ?? '');
  expect(await amiss(engine)).toEqual([]);
});

test('doctor tells of wakes that the functions did not answer', async ({ engine }) => {
  await healthy(engine);
  const owner = await engine.database.connect('supabase_admin');
  await engine.queued('only');
  const content = '{"error":{"code":"wrong_stage","message":"This function was woken for \\"two\\"."}}';
  await owner.query(
    'insert into net._http_response (id, status_code, content) select id, 401, $1 from net.http_request_queue',
    [content],
  );
  const found = await amiss(engine);
  expect(found).toMatchObject([
    {
      what: 'the functions answered the last wake-ups',
      detail: expect.stringMatching(/^flow-only answered 401: This function was woken for "two"; npx millrace connect/),
    },
  ]);
});

/** Has the functions answer all wake-ups that wait, at a moment in seconds from now. */
async function answerWakes(engine: Engine, status: number, seconds = 0): Promise<void> {
  const owner = await engine.database.connect('supabase_admin');
  await owner.query(
    `with sent as (delete from net.http_request_queue returning id)
     insert into net._http_response (id, status_code) select id, $1 from sent`,
    [status],
  );
  await owner.query(`update millrace.posts set posted_at = posted_at + make_interval(secs => $1)`, [seconds]);
}

test('doctor names a function that is not there, and how it is deployed', async ({ engine }) => {
  await healthy(engine);
  await engine.queued('only', 3);
  await answerWakes(engine, 404, -10);
  expect(await amiss(engine)).toEqual([
    {
      what: 'the functions answered the last wake-ups',
      detail: 'flow-only answered 404: it is not deployed; deploy it: npx supabase functions deploy flow-only',
    },
  ]);
  const below = await engine.sql.query(`select millrace.answer_remedy('millrace/poll', 404) as remedy`);
  expect(below.rows).toEqual([{ remedy: 'deploy it: npx supabase functions deploy millrace' }]);
  // The last answer counts: it is there now.
  await engine.advance('30 seconds');
  await engine.sql.query('select millrace.sweep()');
  await answerWakes(engine, 202);
  expect((await amiss(engine)).map(({ what }) => what)).not.toContain('the functions answered the last wake-ups');
});

test('doctor says of each part of the engine that stands still what helps', async ({ engine }) => {
  await healthy(engine);
  await engine.sql.query(
    `select cron.alter_job(jobid, active := false) from cron.job where jobname = 'millrace-sweep'`,
  );
  await engine.sql.query(
    `insert into millrace.alert_rules (name, kind, channels) values ('lost', 'engine', '{nobody}')`,
  );
  await engine.advance('61 seconds');
  const found = new Map((await amiss(engine)).map(({ what, detail }) => [what, detail]));
  expect(Object.fromEntries(found)).toEqual({
    'pg_cron job millrace-sweep': expect.stringMatching(
      /^switched off: select cron\.alter_job\(\d+, active := true\)$/,
    ),
    'the sweep has run in the last minute': expect.stringContaining('select millrace.sweep()'),
    'alerts reach somebody': expect.stringMatching(
      /rule lost names channel nobody, .*: correct it in millrace\.alert_rules/,
    ),
  });
  await engine.sql.query((found.get('pg_cron job millrace-sweep') ?? '').replace('switched off: ', ''));
  expect((await amiss(engine)).map(({ what }) => what)).not.toContain('pg_cron job millrace-sweep');
});

test('doctor judges no request of the project’s own, nor an answer of before a crash that started the ids over', async ({
  engine,
}) => {
  await healthy(engine);
  const owner = await engine.database.connect('supabase_admin');
  await engine.sql.query(`select net.http_post(url => 'http://elsewhere.test')`);
  await engine.queued('only');
  const answer = `insert into net._http_response (id, status_code, created)`;
  await owner.query(`${answer} select id, 500, now() from net.http_request_queue where url like '%elsewhere%'`);
  await owner.query(`${answer} select id, 500, now() - interval '5 minutes' from net.http_request_queue`);
  const judged = `select ok, detail from millrace.doctor() where what = 'the functions answered the last wake-ups'`;
  expect(await engine.rows(judged)).toEqual([{ ok: true, detail: 'no wake-ups yet' }]);
  await owner.query(`${answer} select id, 202, now() from net.http_request_queue where url like '%flow-only'`);
  expect(await engine.rows(judged)).toEqual([{ ok: true, detail: 'answered 202' }]);
});

test('the answers to wake-ups that doctor() keeps are bounded, and are lost with pg_net’s own rows in a crash', async ({
  engine,
}) => {
  await healthy(engine);
  await engine.sql.query(
    `insert into millrace.posts select n, now() - make_interval(secs => n) from generate_series(1, 2000) n`,
  );
  await engine.advance('1 minute');
  await engine.sql.query('select millrace.sweep()');
  expect(await engine.value('select array[count(*), max(request_id)]::int[] from millrace.posts')).toEqual([
    1000, 1000,
  ]);
  expect(
    await engine.rows(
      `select distinct relpersistence from pg_class where oid in ('millrace.posts'::regclass, 'net._http_response'::regclass)`,
    ),
  ).toEqual([{ relpersistence: 'u' }]);
});

test('doctor tells when pg_net’s worker is gone, which sends the wakes', async ({ engine }) => {
  await engine.configureWakeUps();
  await engine.sql.query('select millrace.sweep()');
  expect(await amiss(engine)).toEqual([
    { what: "pg_net's worker runs", detail: expect.stringContaining('net.worker_restart()') },
  ]);
  await showNetWorker(engine);
  expect(await amiss(engine)).toEqual([]);
});

test('doctor tells of errors in the log for an hour', async ({ engine }) => {
  await showNetWorker(engine);
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only');
  await engine.configureWakeUps();
  await engine.sql.query('revoke all on public.items from anon, authenticated');
  await engine.sql.query('select millrace.sweep()');
  expect(await amiss(engine)).toEqual([
    {
      what: 'no errors in the last hour',
      detail: expect.stringMatching(
        /^wake_up_not_configured at [\d-]+ [\d:]+\+00: No function can be woken: project_url or wake_secret is not set: .*errors\.md for each code; an error counts for an hour$/,
      ),
    },
  ]);
  await engine.advance('61 minutes');
  await engine.sql.query('select millrace.sweep()');
  expect((await amiss(engine)).map((row) => row.what)).not.toContain('no errors in the last hour');
});

test("doctor names the five most frequent messages among the last hour's errors, and counts the others", async ({
  engine,
}) => {
  await engine.sql.query(`insert into millrace.log (at, level, code, message)
    select millrace.now() - interval '1 minute', 'error', 'code_' || n, 'it failed'
    from generate_series(1, 40) n, generate_series(1, case when n < 5 then n else 1 end)`);
  const { detail } = (await amiss(engine)).find(({ what }) => what === 'no errors in the last hour') as {
    detail: string;
  };
  expect(detail).toMatch(
    /^code_4 4 times, last at [^;]+: it failed; code_3 3 times, [^;]+; code_2 2 times, [^;]+; code_/,
  );
  expect(detail).toMatch(/: it failed; and 35 more messages: see millrace\.log/);
  expect(detail.match(/it failed/g)).toHaveLength(5);
});

test('doctor tells of ready work that nobody takes, and whose logs to read', async ({ engine }) => {
  await healthy(engine);
  await engine.queued('only');
  await engine.advance('30 seconds');
  await engine.sql.query('select millrace.sweep()');
  expect(await amiss(engine)).toEqual([]);
  await engine.advance('1 second');
  expect(await amiss(engine)).toEqual([
    {
      what: 'ready work is taken within 30 seconds',
      detail:
        'only of flow: nobody takes it up: flow-only is silent: no wake-up came through, see npx millrace doctor; ' +
        'see the log of flow-only: in the dashboard under Edge Functions; locally in the terminal that serves it',
    },
  ]);
  await answerWakes(engine, 503, -14);
  expect(await amiss(engine), 'told once').toEqual([
    {
      what: 'ready work is taken within 30 seconds',
      detail: expect.stringMatching(
        /^only of flow: nobody takes it up: flow-only answered 503 \d+ s ago: the function did not start; see the log of flow-only: in the dashboard under Edge Functions; locally in the terminal that serves it$/,
      ),
    },
  ]);
  await (await Worker.of(engine, 'only')).claim(0);
  expect((await amiss(engine)).map(({ what }) => what)).toEqual(['the functions answered the last wake-ups']);
});

test('doctor tells of ready work at a stage with limits only while they would let it be claimed', async ({
  engine,
}) => {
  await healthy(engine);
  await engine.pipeline([{ name: 'only', limits: { max_in_flight: 1 }, lease_seconds: 3600, timeout_seconds: 30 }]);
  await engine.queued('only', 2);
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  await engine.advance('61 seconds');
  await engine.sql.query('select millrace.sweep()');
  expect(await amiss(engine)).toEqual([]);
  await engine.sql.query('select millrace.cancel($1)', [item.run]);
  await engine.sql.query('select millrace.sweep()');
  expect(await amiss(engine), 'it has just been woken').toEqual([]);
  await engine.advance('10 seconds');
  expect(await amiss(engine)).toMatchObject([{ what: 'ready work is taken within 30 seconds' }]);
});

test('doctor tells of a violated invariant', async ({ engine }) => {
  await healthy(engine);
  await engine.queued('only');
  await engine.sql.query('begin');
  await engine.sql.query('delete from millrace.attempts');
  expect(await amiss(engine)).toEqual([
    {
      what: 'no invariant is violated',
      detail: expect.stringMatching(
        /^a running run owns a live attempt; a stage whose needs are done has begun \(run of entity 1 has none\): select \* from millrace\.check_invariants\(\)/,
      ),
    },
  ]);
  await engine.sql.query('rollback');
});

// Counted in rows, which a busy machine does not change. With each column of a table looked up for each stage they were eight times as many.
test('doctor reads some hundred rows a stage, however many stages there are', async ({ engine }) => {
  await engine.configureWakeUps();
  const stages = chain(Array.from({ length: 25 }, (_, place) => `stage_${place}`));
  const read: number[] = [];
  for (const name of ['a', 'b', 'c', 'd']) {
    await engine.sql.query(
      `create table public.${name} (id bigint generated by default as identity primary key);
       insert into public.${name} default values`,
    );
    await engine.pipeline(stages, { table: `public.${name}` }, name);
    read.push(await planRows(engine.database.superUrl, 'select * from millrace.doctor()'));
  }
  const [one = 0, two = 0, , four = 0] = read;
  expect(four).toBeGreaterThan(one);
  expect(four, 'of a hundred stages').toBeLessThan(55_000);
  expect(four - two, 'the second fifty read as much as the first').toBeLessThan(1.2 * two);
});
