// The time that an operator's reads take in a large project, beside the forms that they had when they walked the history.
import fs from 'node:fs';
import { performance } from 'node:perf_hooks';
import type pg from 'pg';
import { median, type Result, round } from '../results.ts';

const rounds = 9;

const page = `select * from millrace.dead_letters where pipeline = 'bench_3' order by failed_at desc limit 50`;
const day = `now() - interval '1 day', now()`;
const figures = `select * from millrace.figures('bench_3', 'stage_2', ${day})`;
const series = `select * from millrace.series('bench_3', 'stage_2', ${day}, interval '1 minute')`;
const list = (query: object) => `select public.millrace_runs('${JSON.stringify(query)}')`;
const search = (text: string) => `select public.millrace_search('${JSON.stringify({ text })}')`;
const formerStageHealth = `
  select p.name, s.name, count(a.id) filter (where a.state = 'queued' and a.queue_at <= millrace.now()),
    count(a.id) filter (where a.state = 'completed' and not a.superseded),
    count(distinct a.run_id) filter (where a.state = 'failed' and r.status = 'failed' and not a.superseded),
    count(a.id) filter (where a.retry_count > 0), millrace.live_workers(s.id)
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id
  left join millrace.attempts a on a.stage_id = s.id
  left join millrace.runs r on r.id = a.run_id
  group by p.name, s.id, s.name
  order by p.name, s.id`;
/** By name; where a table or view is named, the read is left out unless that is there. */
const reads: [name: string, statement: string, needs?: string][] = [
  ['stage_health', 'select * from millrace.stage_health'],
  ['doctor()', 'select * from millrace.doctor()'],
  ['a slice of check_slice(), 500 runs', 'select * from millrace.check_slice(100000, 100500)'],
  ['dead letters, a page of a pipeline', page],
  ['dead letters, how many', 'select count(*) from millrace.dead_letters'],
  ['dead_letter_counts', 'select * from millrace.dead_letter_counts'],
  ['timeline of a run', 'select * from millrace.timeline(50000)'],
  ['operations of a run', 'select * from millrace.stage_runs where run_id = 50000'],
  ['search by label', search('https://example.com/pages/12345'), 'millrace.journal'],
  ['search by key', search('12345'), 'millrace.journal'],
  ['retention', 'select * from millrace.retention'],
  ['run_slas', 'select * from millrace.run_slas', 'millrace.run_slas'],
  ['figures of a stage, a day', figures, 'millrace.sums'],
  ['series of a stage, a day by minutes', series, 'millrace.sums'],
  ['overview, 1,000 stages', `select public.millrace_overview('{}')`, 'millrace.journal'],
  ['runs by stage', list({ pipeline: 'bench_3', stage: 'stage_2' }), 'millrace.journal'],
  ['runs by error code', list({ error_code: 'error_1' }), 'millrace.journal'],
  ['runs by an error code that there is not', list({ error_code: 'none' }), 'millrace.journal'],
  ['runs that completed, of all pipelines', list({ status: 'completed' }), 'millrace.journal'],
  ['runs that were cancelled, of all pipelines', list({ status: 'cancelled' }), 'millrace.journal'],
  ['runs that failed, by error code', list({ status: 'failed', error_code: 'error_1' }), 'millrace.journal'],
  ['runs under way, by stage', list({ status: 'running', pipeline: 'bench_3', stage: 'stage_1' }), 'millrace.journal'],
  ['millrace_metrics, 1,000 stages', 'select public.millrace_metrics()', 'millrace.alert_rules'],
  ['costs of a pipeline', `select public.millrace_costs('{"pipeline": "bench_3"}')`, 'millrace.watches'],
  ['costs of all pipelines', `select public.millrace_costs()`, 'millrace.watches'],
  [
    'what a change touches',
    `select public.millrace_touched('{"pipeline": "bench_3", "stage": "stage_2"}')`,
    'millrace.watches',
  ],
  ['runs by a text that no run has, with a count', list({ text: 'no run has this', count: true }), 'millrace.watches'],
  ['runs by a text that all have, with a count', list({ text: 'example', count: true }), 'millrace.watches'],
  ['runs that completed, with a count', list({ status: 'completed', count: true }), 'millrace.watches'],
  ['a run, with what made its results', `select public.millrace_run('{"run": 50000}')`, 'millrace.watches'],
  ['progress of a row', `select public.millrace_progress('{"bench_3": {"50002": null}}')`, 'millrace.watches'],
  ['the sweep, all of it', 'select millrace.sweep()'],
];

/** The same as they were before there were figures. */
const former: [name: string, statement: string][] = [
  ['check_invariants()', 'select count(*) from millrace.check_invariants()'],
  ['stage_health', formerStageHealth],
];

interface Taken {
  ms: number;
  /** Of the session's processor: what others do on the machine adds little to it. */
  cpuMs: number;
}

/** Medians in milliseconds, by the clock and of the processor; each former read is run once. */
export async function measureReads(owner: pg.Client, variant: string): Promise<Result[]> {
  const results: Result[] = [];
  const add = (engine: string, name: string, taken: Taken[]) => {
    const result = { work: `operate ${name}`, engine, variant };
    results.push({ ...result, value: round(median(taken.map(({ ms }) => ms))), unit: 'ms' });
    results.push({ ...result, value: round(median(taken.map(({ cpuMs }) => cpuMs))), unit: 'ms of CPU' });
  };
  const there: typeof reads = [];
  for (const read of reads) {
    const { rows } = await owner.query('select $1::text is null or to_regclass($1) is not null as there', [read[2]]);
    if (rows[0]?.there) there.push(read);
  }
  const times = new Map(there.map(([name]) => [name, [] as Taken[]]));
  for (let number = 0; number < rounds; number += 1) {
    for (const [name, statement] of there) times.get(name)?.push(await took(owner, statement));
  }
  for (const [name, list] of times) add('millrace', name, list);
  for (const [name, statement] of former) add('before figures', name, [await took(owner, statement)]);
  return results;
}

async function took(owner: pg.Client, statement: string): Promise<Taken> {
  const { rows } = await owner.query<{ pid: number }>('select pg_backend_pid() as pid');
  const cpu = () => Number(fs.readFileSync(`/proc/${rows[0]?.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  const [started, cpuBefore] = [performance.now(), cpu()];
  await owner.query(statement);
  return { ms: performance.now() - started, cpuMs: cpu() - cpuBefore };
}
