// The time that the sweep's heavy parts take with a thousand stages, and what it takes to start many rows at once. All is rolled back.
import { performance } from 'node:perf_hooks';
import type pg from 'pg';
import { median, type Result, round } from '../results.ts';

const rounds = 3;
const started = 100_000;

/** A minute that has not been judged yet. */
const nextMinute = `update millrace.settings set value = '' where name = 'rules_judged_at'`;
const kinds = `array['error_share', 'dead', 'spend', 'backlog']`;
const thousandRules = `insert into millrace.alert_rules (name, kind, pipeline, stage, above)
  select 'rule_' || s.id, (${kinds})[1 + s.id % 4], p.name, s.name, 0.999
  from millrace.stages s join millrace.pipelines p on p.id = s.pipeline_id`;
/** Ten seconds of 3,000 attempts each in batches of some size, of which one in five failed, by twelve errors. */
const pulses = (stages: number, batch: number) => `
  insert into millrace.pulses (at, pipeline_id, stage_id, outcome, n, run_ms, wait_ms, codes)
  select now() - n * interval '10 seconds' / b.batches, s.pipeline_id, s.id,
    case n % 5 when 1 then 'failed' else 'completed' end, ${batch},
    array(select (random() * 10000 + s.id)::real from generate_series(1, ${batch})),
    array(select (random() * 10000 + s.id)::real from generate_series(1, ${batch})),
    case n % 5 when 1 then array(select 'error_' || (s.id + i) % 12 from generate_series(1, ${batch}) i) end
  from (select * from millrace.stages order by id limit ${stages}) s,
    (select greatest(30000 / ${batch} / ${stages}, 1)) b (batches), generate_series(1, b.batches) n`;
const fold = `do $$ begin loop exit when millrace.add_pulses() < 3000; end loop; end $$`;
/** Other keys in each round, so that no index is full of what was rolled back. */
const key = 'extract(epoch from now())::bigint * 1000000 + n';
const newRows = `insert into public.bench_pages (id, url) select ${key}, 'new ' || n from generate_series(1, ${started}) n`;
const keys = `array(select (${key})::text from generate_series(1, ${started}) n)`;

/** By name: what is written before, and what is measured. */
const writes: [name: string, before: string[], statement: string][] = [
  ['the judge, default rules', [nextMinute], 'select millrace.evaluate_rules()'],
  ['the judge, 1,000 rules', [nextMinute, thousandRules], 'select millrace.evaluate_rules()'],
  ['the fold, 10 s of full load at 10 stages', [pulses(10, 50), fold, pulses(10, 50)], fold],
  ['the fold, the same over 1,000 stages', [pulses(1000, 6), fold, pulses(1000, 6)], fold],
  ['start() of 100,000 keys', [newRows], `select millrace.start('bench_3', ${keys})`],
  ['a bare insert of as many rows', [], newRows],
];

/** Medians in milliseconds, and how many times a bare insert start() takes. */
export async function measureWrites(owner: pg.Client, variant: string): Promise<Result[]> {
  const results: Result[] = [];
  for (const [name, before, statement] of writes) {
    const times: number[] = [];
    for (let number = 0; number < rounds; number += 1) {
      await owner.query('begin');
      for (const each of before) await owner.query(each);
      const began = performance.now();
      await owner.query(statement);
      times.push(performance.now() - began);
      await owner.query('rollback');
    }
    results.push({ work: `operate ${name}`, engine: 'millrace', variant, value: round(median(times)), unit: 'ms' });
  }
  const [startMs, bareMs] = results.slice(-2).map(({ value }) => value);
  const times = round((startMs ?? 0) / (bareMs ?? 1));
  const work = 'operate start() of 100,000 keys to a bare insert';
  return [...results, { work, engine: 'millrace', variant, value: times, unit: 'times' }];
}
