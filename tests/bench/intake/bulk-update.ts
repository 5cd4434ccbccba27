// The time it takes to begin 100,000 rows in one statement, against the same write where nothing begins, and against what has to be
// written in any case: a run and an attempt each, with their indexes, by hand.
import { performance } from 'node:perf_hooks';
import type { BenchDatabase } from '../database.ts';
import { defineChain } from '../engines/millrace.ts';
import { median, type Result, round } from '../results.ts';

const count = 100_000;
const rounds = 3;
const numbers = `generate_series(1, ${count}) i`;

interface Bulk {
  engine: 'millrace' | 'bare' | 'by hand';
  variant: string;
  /** Emptied and filled before each round. */
  table: string;
  fill?: string;
  write: string;
}

const leads = `(email, company_url, account_id)
  select 'person' || i || '@example.com', 'https://example.com/' || i, gen_random_uuid() from ${numbers}`;
const labels = `(id, label) select i, 'row ' || i from ${numbers}`;

const update = (engine: Bulk['engine'], variant: string, table: string, rows: string, status: string): Bulk => ({
  engine,
  variant,
  table,
  fill: `insert into ${table} ${rows}`,
  write: `update ${table} set ${status} = 'queued'`,
});

const bulks: Bulk[] = [
  update('bare', 'leads in one update', 'public.bare_leads', leads, 'scrape_status'),
  update('millrace', 'leads in one update', 'public.leads', leads, 'scrape_status'),
  update('bare', 'rows of a plain chain in one update', 'public.bare_columns', labels, 'one_status'),
  update('millrace', 'rows of a plain chain in one update', 'public.bench_columns', labels, 'one_status'),
  {
    engine: 'bare',
    variant: 'rows by start()',
    table: 'public.bare_none',
    write: `insert into public.bare_none ${labels}`,
  },
  {
    engine: 'millrace',
    variant: 'rows by start()',
    table: 'public.bench_none',
    fill: `insert into public.bench_none ${labels}`,
    write: `select millrace.start('bench_none', array(select i::text from ${numbers}))`,
  },
  {
    engine: 'by hand',
    variant: 'runs and attempts alone',
    table: 'public.bare_none',
    write: `with run as (
        insert into millrace.runs (pipeline_id, version_id, entity_id, trace_id, created_at)
        select p.id, p.current_version_id, i::text, t.id, now()
        from millrace.pipelines p, unnest(array(select gen_random_uuid() from ${numbers} order by 1)) with ordinality t(id, i)
        where p.name = 'bench_none'
        returning id, version_id)
      insert into millrace.attempts (run_id, stage_id, number, queue_at, created_at)
      select r.id, s.stage_id, 1, now(), now()
      from run r
      join millrace.version_stages s on s.version_id = r.version_id and s.needs = '{}'
      order by r.id`,
  },
];

/** Medians in milliseconds, of all in turn. */
export async function bulkUpdate(database: BenchDatabase, progress: (message: string) => void): Promise<Result[]> {
  const { owner } = database;
  for (const projection of ['columns', 'none']) await defineChain(owner, projection);
  for (const [bare, like] of Object.entries({ leads: 'leads', columns: 'bench_columns', none: 'bench_none' })) {
    await owner.query(`create table public.bare_${bare} (like public.${like} including all) with (fillfactor = 50)`);
  }
  const times = bulks.map(() => [] as number[]);
  for (let number = 1; number <= rounds; number += 1) {
    for (const [place, { engine, variant, table, fill, write }] of bulks.entries()) {
      // The engine's tables first: emptying the others would otherwise delete their runs one by one.
      await owner.query('truncate millrace.runs, millrace.attempts, millrace.claims, millrace.wake_ups');
      await owner.query(`truncate ${table}`);
      if (fill) await owner.query(fill);
      await owner.query(`vacuum analyze ${table}`);
      await database.superuser.query('checkpoint');
      const started = performance.now();
      await owner.query(write);
      const took = performance.now() - started;
      times[place]?.push(took);
      progress(`intake ${number}/${rounds}: ${count} ${variant}, ${engine}: ${round(took)} ms`);
    }
  }
  await owner.query('truncate millrace.runs, millrace.attempts, millrace.claims, millrace.wake_ups');
  await owner.query(
    'drop table public.bare_leads, public.bare_columns, public.bare_none; truncate public.bench_columns, public.bench_none',
  );
  return bulks.map(({ engine, variant }, place) => ({
    work: 'intake',
    engine,
    variant: `${count.toLocaleString('en-US')} ${variant}`,
    value: round(median(times[place] ?? [])),
    unit: 'ms',
  }));
}
