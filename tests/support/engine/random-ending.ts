// The end of a random history: everything is brought to its end, and what was recorded is looked at.
import type pg from 'pg';
import { expect } from 'vitest';
import type { Engine, Row } from '../engine.ts';
import { type Claimed, completed, failed, Worker, waiting } from '../worker.ts';
import type { Graph } from './random-graphs.ts';
import { spawn } from './random-history.ts';

/** Works off what is queued at one stage. */
async function drain(service: pg.Client, pipeline: string, stage: string, kind: string): Promise<void> {
  const worker = Worker.over(service, stage, pipeline);
  const outcome = async (item: Claimed) => {
    if (kind !== 'map') return completed(item, { ok: true });
    try {
      return waiting(item, `${(await spawn(worker, item, ['1', '3'], true)).fan_out}`, 'children');
    } catch (error) {
      return failed(item, { message: (error as Error).message });
    }
  };
  for (let { batch } = await worker.claim(50); batch.length > 0; ) {
    const reports: Row[] = [];
    for (const item of batch) reports.push(await outcome(item));
    const answer = await worker.complete(reports, 50);
    const sour = answer.items.filter(({ verdict }) => verdict !== 'accepted' && verdict !== 'stale');
    if (sour.length > 0) throw new Error(`not recorded: ${JSON.stringify(sour)}`);
    ({ batch } = answer);
  }
  await worker.leave();
}

/** Ends jobs and answers questions. */
async function answerAll(engine: Engine): Promise<void> {
  const jobs = await engine.rows(
    `select coalesce(submission_id, id)::int as submission, service, job_id, 'completed' as outcome, '{"ok": true}'::jsonb as result
     from millrace.attempts where state = 'waiting' and service = 'scraper'`,
  );
  await engine.sql.query('select public.millrace_resume($1)', [JSON.stringify(jobs)]);
  const asked = await engine.rows(`select id from millrace.attempts where state = 'waiting' and service = 'decision'`);
  for (const { id } of asked) await engine.sql.query(`select public.millrace_decide($1, '{"ok": true}')`, [id]);
}

/** Brings every live run to its end. Throws when some never end. */
export async function finishAll(engine: Engine): Promise<void> {
  const service = await engine.database.connect('service_role');
  await engine.sql.query('update millrace.stages set enabled = true');
  await engine.sql.query('update millrace.pipelines set enabled = true');
  const open = `(select count(*) from millrace.runs where status = 'running')
    + (select count(*) from millrace.fan_outs where state = 'abandoned') + (select count(*) from millrace.child_tallies)`;
  for (let round = 0; round < 60; round++) {
    await engine.advance('31 seconds');
    await engine.sql.query('select millrace.sweep()');
    const work = await engine.rows<{ pipeline: string; stage: string; kind: string }>(
      `select distinct p.name as pipeline, s.name as stage, s.kind from millrace.attempts a
       join millrace.stages s on s.id = a.stage_id join millrace.pipelines p on p.id = s.pipeline_id where a.state = 'queued'`,
    );
    for (const { pipeline, stage, kind } of work) await drain(service, pipeline, stage, kind);
    await answerAll(engine);
    if ((await engine.value(`select (${open})::int`)) === 0) return service.end();
  }
  throw new Error(
    `some runs never end: ${JSON.stringify(
      await engine.rows(`
    select o.run_id, o.pipeline, o.stage, o.state from millrace.stage_runs o join millrace.runs r on r.id = o.run_id where r.status = 'running' order by 1`),
    )}`,
  );
}

/** Nothing is live any more, nothing is late, no sweep failed, and what was accepted is what is recorded. */
export async function expectOver(engine: Engine, accepted: Map<number, unknown>): Promise<void> {
  await engine.expectSound();
  await engine.sql.query('select millrace.sweep()');
  // The sweep goes on after a fault of one part, and only reports it. A user may have held what it wanted.
  const faults = `select l.message from millrace.log l where l.code = 'sweep_failed' and l.message !~ 'lock timeout'`;
  expect(await engine.rows(faults)).toEqual([]);
  expect(await engine.rows('select * from millrace.late_runs')).toEqual([]);
  const live = `select a.id, a.state from millrace.attempts a where a.state in ('queued', 'started', 'waiting')`;
  expect(await engine.rows(live)).toEqual([]);
  expect(await engine.rows(`select id, state from millrace.fan_outs where state in ('open', 'abandoned')`)).toEqual([]);
  const recorded = await engine.rows<{ id: number; state: string; output: unknown }>(
    `select a.id::int as id, a.state, a.output from millrace.attempts a where a.id = any ($1)`,
    [[...accepted.keys()]],
  );
  expect(recorded).toEqual(recorded.map(({ id }) => ({ id, state: 'completed', output: accepted.get(id) })));
}

/**
 * Stages whose columns differ from what the newest run of their row came to. Where that run failed before a stage could
 * begin, they may still show the run before it, and anything where the row has a later run of the other way of a cut-over.
 */
export const unlike = (pipeline: string, table: string, stage: string, other = '') => `
  select i.id, '${stage}' as stage, i.${stage}_status as shown, a.state, a.error from public.${table} i
  join lateral (select r.id from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
    where p.name = '${pipeline}' and r.entity_id = i.id::text and not exists (
      select from millrace.runs l join millrace.pipelines o on o.id = l.pipeline_id and o.name = '${other}'
      where l.entity_id = r.entity_id and l.id > r.id)
    order by r.id desc limit 1) r on true
  left join lateral (select a.state, case when a.error ? 'on_demand' then 'on_demand' else a.error ->> 'code' end as error, a.output from millrace.attempts a join millrace.stages s on s.id = a.stage_id
    where a.run_id = r.id and s.name = '${stage}' and not a.superseded order by a.number desc limit 1) a on true
  where (a.state is not null or i.${stage}_status in ('queued', 'started'))
    and (i.${stage}_status <> case when a.state is null or a.error = 'on_demand' then 'pending' when a.state = 'cancelled' or a.error = 'failed' then 'failed' else a.state::text end
     or i.${stage}_result is distinct from case when a.state = 'completed' then a.output end)`;

/** The columns of each row show what its newest runs came to. */
export async function expectShown(engine: Engine, graph: Graph): Promise<void> {
  if (graph.projection === 'none') return;
  for (const [pipeline, table] of [
    ['flow', 'items'],
    ['sub', 'items'],
    ['parts', 'parts'],
    ['beside', 'items'],
  ] as const) {
    for (const { name } of graph[pipeline]) expect(await engine.rows(unlike(pipeline, table, name))).toEqual([]);
  }
}
