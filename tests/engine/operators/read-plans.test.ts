// No read that a person or a page makes walks the history.
import { expect } from 'vitest';
import { planRows } from '../../support/engine/plan-rows.ts';
import { sequentialScans } from '../../support/engine/plan-scans.ts';
import { makeLinks } from '../../support/engine/status.ts';
import { chain, type Engine, findingsTest as test } from '../../support/engine.ts';

/** Runs that are over, of which one in fifty failed, with two attempts each: enough for the planner to take to indexes. */
async function history(engine: Engine, runs: number): Promise<void> {
  await engine.sql.query(
    `insert into public.items (id, label) select n, 'item ' || n from generate_series(1, $1::int) n on conflict do nothing`,
    [runs],
  );
  await engine.sql.query(
    `insert into millrace.runs (pipeline_id, version_id, entity_id, status, created_at, finished_at, failed_stage_id, error_code)
     select p.id, p.current_version_id, n::text,
       (case when n % 50 = 0 then 'failed' else 'completed' end)::millrace.run_status,
       millrace.now() - interval '30 days' * n / $1, millrace.now() - interval '30 days' * n / $1,
       case when n % 50 = 0 then s.id end, case when n % 50 = 0 then 'code_' || n % 3 end
     from generate_series(1, $1::int) n, millrace.pipelines p
     join millrace.stages s on s.pipeline_id = p.id and s.name = 'second'
     where p.name = 'flow'`,
    [runs],
  );
  await engine.sql.query(
    `insert into millrace.attempts (run_id, stage_id, number, state, created_at, finished_at, output, usage, error)
     select r.id, s.id, 1, case when s.id = r.failed_stage_id then 'failed' else 'completed' end::millrace.attempt_state,
       r.created_at, r.finished_at, case when s.id is distinct from r.failed_stage_id then '1'::jsonb end,
       case when s.id is distinct from r.failed_stage_id then '{"model": "m", "cost_usd": 0.001}'::jsonb end,
       case when s.id = r.failed_stage_id then jsonb_build_object('code', r.error_code, 'message', 'it failed') end
     from millrace.runs r
     join millrace.stages s on s.pipeline_id = r.pipeline_id
     where not exists (select from millrace.attempts a where a.run_id = r.id)`,
  );
  await engine.sql.query(`insert into millrace.log (level, code, message)
    select 'info', 'x', 'x' from generate_series(1, 5000)`);
  await engine.sql.query('vacuum analyze millrace.runs, millrace.attempts, millrace.log, public.items');
}

/** Runs beside them that wait at the first stage. */
async function queued(engine: Engine, runs: number): Promise<void> {
  await engine.sql.query(
    `insert into millrace.runs (pipeline_id, version_id, entity_id, created_at)
     select p.id, p.current_version_id, n::text, millrace.now() from generate_series(1, $1::int) n, millrace.pipelines p
     where p.name = 'flow'`,
    [runs],
  );
  await engine.sql.query(
    `insert into millrace.attempts (run_id, stage_id, number, created_at, queue_at)
     select r.id, s.id, 1, millrace.now(), millrace.now()
     from millrace.runs r
     join millrace.stages s on s.pipeline_id = r.pipeline_id and s.name = 'first'
     where r.status = 'running'`,
  );
  await engine.sql.query('vacuum analyze millrace.runs, millrace.attempts');
}

const reads = {
  'dead letters, a page': `select * from millrace.dead_letters where pipeline = 'flow' order by failed_at desc limit 50`,
  'dead letters by cause': `select * from millrace.dead_letters where stage = 'second' and error_code = 'code_1' limit 50`,
  'dead letters, how many': 'select count(*) from millrace.dead_letters',
  'dead letters by stage and error': 'select * from millrace.dead_letter_counts',
  limits: `select public.millrace_limits('{}')`,
  settings: `select public.millrace_settings('{}')`,
  doctor: 'select * from millrace.doctor()',
  'a slice of the invariants': 'select * from millrace.check_slice(3000, 3500)',
  'what is kept': 'select * from millrace.retention',
  'values of a status': `select public.millrace_status('{"pipeline": "page_links", "value": "new"}')`,
  'versions of a definition': `select public.millrace_settings('{"pipeline": "flow"}')`,
  'search by label': `select public.millrace_search('{"text": "item 7"}')`,
  'search by key': `select public.millrace_search('{"text": "77"}')`,
  'search by trace': `select public.millrace_search(jsonb_build_object('text', gen_random_uuid()))`,
  'what a run has been through': 'select * from millrace.timeline(5000)',
  'the stages of a run': 'select * from millrace.stage_runs where run_id = 5000',
  overview: `select public.millrace_overview('{}')`,
  metrics: 'select public.millrace_metrics()',
  'runs by stage': `select public.millrace_runs('{"pipeline": "flow", "stage": "second"}')`,
  'runs by error code': `select public.millrace_runs('{"error_code": "code_1"}')`,
  'runs that failed, by stage': `select public.millrace_runs('{"pipeline": "flow", "stage": "second", "status": "failed"}')`,
  'a page of dead letters': `select public.millrace_runs('{"pipeline": "flow", "status": "failed"}')`,
  'runs that completed': `select public.millrace_runs('{"status": "completed"}')`,
  'runs that failed, by error code': `select public.millrace_runs('{"status": "failed", "error_code": "code_1"}')`,
  'runs by a text anywhere': `select public.millrace_runs('{"text": "no run has this"}')`,
  'a count of runs': `select public.millrace_runs('{"status": "completed", "count": true}')`,
  'a count of runs by a text': `select public.millrace_runs('{"text": "item", "count": true}')`,
  'runs of a parent': `select public.millrace_runs('{"parent": 5000}')`,
  'runs under way': `select public.millrace_runs('{"status": "running"}')`,
  'what a change touches': `select public.millrace_touched('{"pipeline": "flow", "stage": "first"}')`,
  'costs of all pipelines': 'select public.millrace_costs()',
  'costs of a pipeline': `select public.millrace_costs('{"pipeline": "flow"}')`,
  'a run, with what made its results': `select public.millrace_run('{"run": 5000}')`,
  'progress of a row': `select public.millrace_progress('{"flow": {"77": null}}')`,
  'a preview of failed runs': `select public.millrace_act(
    '{"verb": "preview", "do": {"verb": "retry"}, "filter": {"pipeline": "flow", "error_code": "code_1"}}')`,
  'a slice of failed runs': `with b as (update millrace.bulks set state = 'running' returning id)
    select (millrace.work_slice(id)).state from b`,
  sweep: 'select millrace.sweep()',
};

test('no read walks the runs, the attempts, the log or the alerts from end to end', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second'], { limits: { max_in_flight: 3 } }), { label: 'label' });
  await engine.sql.query('create index on public.items (label text_pattern_ops)');
  await makeLinks(engine);
  await engine.sql.query(`insert into public.link (label, status) select 'l', 'new' from generate_series(1, 500)`);
  await engine.sql.query(`insert into millrace.alert_channels (name, kind) values ('ops', 'slack')`);
  await engine.sql.query(`insert into millrace.alert_messages (channel_id, state, events, created_at, ended_at)
    select c.id, 'delivered', '[]', millrace.now(), millrace.now()
    from millrace.alert_channels c, generate_series(1, 5000)`);
  await history(engine, 20_000);
  await queued(engine, 1_000);
  const walked: Record<string, string[]> = {};
  for (const [name, statement] of Object.entries(reads)) {
    const tables = await sequentialScans(engine.database.superUrl, statement);
    const large = tables.filter((table) => ['runs', 'attempts', 'alerts', 'alert_messages', 'log'].includes(table));
    if (large.length > 0) walked[name] = large;
  }
  expect(walked).toEqual({});
  await engine.sql.query('truncate millrace.runs, millrace.attempts restart identity');
});

test('late runs are read by their index, however many are bounded and will be late', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second']));
  await history(engine, 5_000);
  await queued(engine, 10_000);
  await engine.sql.query(`update millrace.attempts set late_at = millrace.now() + make_interval(secs => id - 20000)
    where state = 'queued'`);
  await engine.sql.query('vacuum analyze millrace.attempts');
  const walked: string[] = [];
  for (const read of ['late_runs', 'late_counts']) {
    walked.push(...(await sequentialScans(engine.database.superUrl, `select * from millrace.${read}`)));
  }
  await engine.sql.query('truncate millrace.runs, millrace.attempts restart identity');
  expect(walked.filter((table) => ['runs', 'attempts'].includes(table))).toEqual([]);
});

test('a read looks at no more rows with a longer history', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second'], { limits: { max_in_flight: 3 } }), { label: 'label' });
  await engine.sql.query('create index on public.items (label text_pattern_ops)');
  const flat = [
    'doctor',
    'a slice of the invariants',
    'search by label',
    'runs by a text anywhere',
    'a count of runs',
    'a count of runs by a text',
    'what a run has been through',
    'what a change touches',
    'costs of all pipelines',
    'costs of a pipeline',
    'a run, with what made its results',
    'progress of a row',
    'sweep',
  ] as const;
  const cost = async () => {
    // Whether a plan reads all stages or looks one up is up to statistics, which autovacuum gathers when it comes by.
    await engine.sql.query('analyze millrace.pipelines, millrace.versions, millrace.version_stages, millrace.stages');
    const rows: number[] = [];
    for (const name of flat) rows.push(await planRows(engine.database.superUrl, reads[name]));
    return rows;
  };
  await history(engine, 6_000);
  await queued(engine, 1_000);
  const few = await cost();
  // The log too: doctor() reads that of the last hour.
  await engine.sql.query('truncate millrace.runs, millrace.attempts, millrace.log restart identity');
  await history(engine, 24_000);
  await queued(engine, 1_000);
  const many = await cost();
  // Before anything fails: what is left here would keep a second try from ever passing.
  await engine.sql.query('truncate millrace.runs, millrace.attempts restart identity');
  for (const [place, name] of flat.entries()) {
    expect({ [name]: many[place] }).toEqual({
      [name]: expect.toSatisfy((rows: number) => rows < (few[place] ?? 0) * 1.5),
    });
  }
});

test('a page of the dead, by pipeline, stage or both, reads as few rows beside many dead as beside few', async ({
  engine,
}) => {
  await engine.pipeline(chain(['first', 'second']));
  const die = (runs: number, stage: string) =>
    engine.sql.query(
      `insert into millrace.runs (pipeline_id, version_id, entity_id, status, created_at, finished_at, failed_stage_id, error_code)
       select p.id, p.current_version_id, n || $2, 'failed', millrace.now(), millrace.now() + n * interval '1 second', s.id, 'code_' || n % 3
       from generate_series(1, $1::int) n, millrace.pipelines p
       join millrace.stages s on s.pipeline_id = p.id and s.name = $2
       where p.name = 'flow'`,
      [runs, stage],
    );
  const pages = [
    'runs by stage',
    'runs that failed, by stage',
    'a page of dead letters',
    'runs by error code',
  ] as const;
  const cost = async () => {
    await engine.sql.query('vacuum analyze millrace.runs');
    const rows: number[] = [];
    for (const name of pages) rows.push(await planRows(engine.database.superUrl, reads[name]));
    return rows;
  };
  await die(100, 'second');
  const few = await cost();
  await die(4000, 'second');
  await die(4000, 'first');
  const many = await cost();
  await engine.sql.query('truncate millrace.runs, millrace.attempts restart identity');
  for (const [place, name] of pages.entries()) {
    expect({ [name]: (many[place] as number) - (few[place] as number) }).toEqual({
      [name]: expect.toSatisfy((rows: number) => rows < 1000),
    });
  }
});

test('by the label of its row a run is found at once, though statistics are of a time when one row had all runs', async ({
  engine,
}) => {
  await engine.pipeline(chain(['first', 'second']), { label: 'label' });
  await engine.sql.query('create index on public.items (label text_pattern_ops)');
  await engine.sql.query(`insert into public.items (id, label) select n, 'item ' || n from generate_series(1, 5000) n`);
  const end = (rows: string) =>
    engine.sql.query(`insert into millrace.runs (pipeline_id, version_id, entity_id, status, created_at, finished_at)
      select p.id, p.current_version_id, ${rows}, 'completed', millrace.now(), millrace.now()
      from millrace.pipelines p, generate_series(1, 5000) n where p.name = 'flow'`);
  await end(`'1'`);
  await engine.sql.query('vacuum analyze millrace.runs, public.items');
  await end('n::text');
  const rows = await planRows(engine.database.superUrl, reads['search by label']);
  await engine.sql.query('truncate millrace.runs, millrace.attempts restart identity');
  expect(rows).toBeLessThan(2000);
});
