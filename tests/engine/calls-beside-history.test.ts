// What a call reads depends on what it is about, not on what has ended before, on what else waits, or on when its session has made
// its plans.
import type pg from 'pg';
import { expect } from 'vitest';
import { collectChildren, defineFamily, numbers, Spawner } from '../support/children.ts';
import { type Engine, type Row, test } from '../support/engine.ts';
import { inCountingSession } from '../support/plan-rows.ts';
import { type Claimed, completed, failed, released, Worker, waiting } from '../support/worker.ts';

/** Pipelines that have a bit of everything: `flow`, and `jobs` with limits, over items, `folder` with children in `files` and `subs`. */
async function defineAll(engine: Engine): Promise<void> {
  await engine.pipeline([{ name: 'only' }], { table: 'public.folders', projection: 'none' }, 'subs');
  await defineFamily(engine, {
    split: { fan_in: { failed_children: 'ignore' } },
    beside: [
      { name: 'early', after: [{ map: 'split', stage: 'scan', count: 1 }] },
      { name: 'sub', kind: 'pipeline', child: { pipeline: 'subs' }, needs: ['split'] },
    ],
    files: [{ name: 'scan', on_failure: 'continue' }],
  });
  await engine.pipeline([
    { name: 'one', sla_seconds: 3600 },
    { name: 'ask', kind: 'manual', needs: ['one'], decision: { schema: {} } },
    { name: 'think', kind: 'agent', needs: ['ask'], agent: {} },
  ]);
  await engine.sql.query(`select millrace.define_limit('service', '{"rate": {"count": 1000, "per_seconds": 1}}')`);
  const key = { column: 'folder' };
  const limits = { shared: ['service'], concurrency: { ...key, limit: 1000 } };
  const completion = { callback: true, poll_seconds: 5, deadline_seconds: 600 };
  const jobs = await engine.pipeline(
    [
      { name: 'gate', kind: 'gate', limits: { concurrency: key, rate: { count: 1000, per_seconds: 1 } } },
      { name: 'job', kind: 'external', needs: ['gate'], completion, limits },
    ],
    { projection: 'none' },
    'jobs',
  );
  await engine.define({ ...jobs, quota: { ...key, starts: { count: 1000, per_seconds: 60 } } });
  await engine.sql.query(`insert into millrace.alert_channels (name, kind) values ('ops', 'slack')`);
}

/** Calls by their names, each as it stands after those before it, all in one session. */
function calls(engine: Engine, client: pg.Client): Record<string, () => Promise<unknown>> {
  const ask = async (statement: string, ...values: unknown[]) => (await client.query(statement, values)).rows[0]?.a;
  const work = async (stage: string, pipeline: string, ...ends: ((item: Claimed) => Row)[]) => {
    const worker = Worker.over(client, stage, pipeline);
    for (const end of ends) await worker.complete((await worker.take(5)).map(end));
    await worker.leave();
  };
  const insert = (table: string) => ask(`insert into public.${table} (label) values ('new') returning id as a`);
  const runOf = (pipeline: string, row: string) => ask('select millrace.run_of($1, $2) as a', pipeline, row);
  const done = (item: Claimed) => completed(item);
  let id: string;
  let folder: string;
  let submission: number;
  return {
    'a start': async () => {
      id = await insert('items');
      await ask(`select millrace.start('flow', $1)`, id);
    },
    'a release and a completion': () => work('one', 'flow', released, done),
    'a decision': () =>
      ask(
        `select public.millrace_decide(max(attempt_id), '1') from public.millrace_decisions where entity_id = $1`,
        id,
      ),
    'the end of a conversation': () => work('think', 'flow', done),
    'a start in the middle': () => ask(`update public.items set think_status = 'queued' where id = $1`, id),
    costs: async () => ask('select millrace.stage_costs($1)', await runOf('flow', id)),
    'a start before a gate': () => ask(`select millrace.start('jobs', $1)`, id),
    'a gate that is passed, elsewhere': () => engine.sql.query('select millrace.sweep()'),
    'a claim under limits and a quota': () =>
      work('job', 'jobs', (item) => {
        submission = item.submission;
        return waiting(item, `job-${item.run}`);
      }),
    'the end of a job': async () => {
      const end = { submission, service: 'scraper', outcome: 'completed', result: 1 };
      await ask('select public.millrace_resume($1)', JSON.stringify([end]));
    },
    'a fault of a job': () => ask(`select public.millrace_note_faults('[{"service": "x", "message": "m"}]')`),
    'a deleted row': () => ask('delete from public.items where id = $1', id),
    'children that are collected': async () => {
      folder = await insert('folders');
      await ask(`select millrace.start('folder', $1)`, folder);
      const worker = Worker.over(client, 'split', 'folder');
      const spawner = new Spawner(worker, await worker.takeOne());
      await spawner.spawn(numbers(1, 2), true);
      await spawner.wait();
      await work('scan', 'files', (item) => failed(item, { permanent: true }));
      await collectChildren(engine, [spawner.fanOut], client);
      await work('only', 'subs', done);
      await collectChildren(engine, [await ask('select max(id)::int as a from millrace.fan_outs')], client);
    },
    'a parent that starts over, and is cancelled': async () => {
      const run = await runOf('folder', folder);
      await ask(`select millrace.reset($1, 'split')`, run);
      await ask('select millrace.cancel($1)', run);
    },
    'messages about alerts': async () => {
      await ask(`insert into millrace.alert_messages (channel_id, events, created_at)
        select id, '[]', millrace.now() from millrace.alert_channels`);
      const { messages } = await ask('select public.millrace_take_messages() as a');
      const said = messages.map((told: Row) => ({ message: told.message, try: told.try, ok: true }));
      await ask('select public.millrace_note_deliveries($1)', JSON.stringify(said));
    },
    metrics: () => ask('select public.millrace_metrics()'),
    health: () => ask('select public.millrace_health()'),
    'a sweep': () => ask('select millrace.sweep()'),
  };
}

/** Adds runs of all pipelines, one in a hundred of which is not due yet and the others have ended, with all that may hang on them. */
async function grow(engine: Engine, runs: number, output = '1'): Promise<void> {
  await engine.sql.query(`
    insert into millrace.runs (pipeline_id, version_id, entity_id, status, created_at, finished_at)
    select p.id, p.current_version_id, (1000000 + n + (select count(*) from millrace.runs))::text, case when n % 100 > 0 then 'completed' else 'running' end::millrace.run_status,
      millrace.now(), case when n % 100 > 0 then millrace.now() end
    from millrace.pipelines p, generate_series(1, ${runs}) n;
    insert into millrace.attempts (run_id, stage_id, number, state, created_at, output, queue_at, late_at, poll_at)
    select r.id, s.id, 1, case r.status when 'running' then 'queued' else 'completed' end::millrace.attempt_state, r.created_at,
      case when r.status <> 'running' then '${output}'::jsonb end, case r.status when 'running' then l.later end, l.later, l.later
    from millrace.runs r
    join millrace.stages s on s.pipeline_id = r.pipeline_id
    cross join (select millrace.now() + interval '1 hour') l(later)
    where r.entity_id::int > 1000000
      and not exists (select from millrace.attempts a where a.run_id = r.id);
    insert into public.millrace_decisions (attempt_id, pipeline, stage, run_id, entity_id, schema, opened_at, deadline_at, closed_at)
    select a.id, '', '', a.run_id, '', '{}', a.created_at, a.created_at, a.created_at
    from millrace.attempts a join millrace.stages s on s.id = a.stage_id and s.kind = 'manual'
    on conflict do nothing;
    insert into millrace.fan_outs (run_id, stage_id, attempt_id, child_pipeline_id, state)
    select a.run_id, a.stage_id, a.id, 1, case a.state when 'completed' then 'finished' else 'open' end
    from millrace.attempts a join millrace.stages s on s.id = a.stage_id and s.kind in ('map', 'pipeline')
    on conflict do nothing;
    insert into millrace.fan_progress (fan_out_id, stage_id)
    select f.id, s.id from millrace.fan_outs f, millrace.stages s where s.counted_by_parent
    on conflict do nothing;
    insert into millrace.turns (run_id, stage_id, execution, seq, kind, content, attempt_id, created_at)
    select a.run_id, a.stage_id, 1, 1, 'model', '{}', a.id, a.created_at
    from millrace.attempts a join millrace.stages s on s.id = a.stage_id and s.kind = 'agent'
    on conflict do nothing;
    insert into millrace.alert_messages (channel_id, state, events, created_at, ended_at)
    select c.id, 'delivered', '[]', millrace.now(), millrace.now() from millrace.alert_channels c, generate_series(1, ${runs});
    insert into millrace.log (at, level, code, message)
    select millrace.now() - n * interval '10 minutes', 'error', 'job_fault', '' from generate_series(1, ${runs}) n;
    insert into millrace.limit_uses (limit_id, key, kind, during, used, summed)
    select l.id, n::text, 'starts', tstzrange(millrace.now(), millrace.now() + interval '1 hour'), 1, true
    from millrace.limits l, generate_series(1, ${runs}) n`);
}

const clear = `
  truncate millrace.runs, millrace.attempts, millrace.fan_outs, millrace.fan_progress, millrace.child_tallies, millrace.turns,
    millrace.claims, millrace.pulses, millrace.sums, public.millrace_decisions, public.items, public.folders`;

// In the statistics of the second, results are wide, so that a table of few pages seems to hold few.
test.for([['there was nothing'], ['much had ended, before it was deleted']])(
  'no call reads more beside many runs than it did beside few, by plans that it made then, of a time when %s',
  async ([before], { engine }) => {
    await defineAll(engine);
    const deleted = before !== 'there was nothing';
    if (deleted) await grow(engine, 100, `"${'wide'.repeat(250)}"`);
    await engine.sql.query('vacuum analyze');
    if (deleted) await engine.sql.query(clear);
    const grown = await inCountingSession(engine.database.superUrl, async (client, rows) => {
      // What has a choice makes such plans after its fifth call.
      await client.query('set plan_cache_mode = force_generic_plan');
      const deeds = Object.entries(calls(engine, client));
      const few: number[] = [];
      for (const [, deed] of deeds) await deed();
      // What looks at the newest runs finds some.
      await grow(engine, 50);
      for (const [, deed] of deeds) few.push(await rows(deed));
      await grow(engine, 3000);
      const more: Record<string, number> = {};
      for (const [place, [name, deed]] of deeds.entries()) more[name] = (await rows(deed)) - (few[place] as number);
      return more;
    });
    // Before anything fails: nothing of this has its row.
    await engine.sql.query(clear);
    expect(Object.fromEntries(Object.entries(grown).filter(([, more]) => more > 2500))).toEqual({});
  },
);
