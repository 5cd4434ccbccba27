// One update of 100,000 leads to `queued`, against the same update of a copy of the table that has no triggers.
import { performance } from 'node:perf_hooks';
import type { BenchDatabase } from '../database.ts';
import { median, type Result, round } from '../results.ts';

const leads = 100_000;
const rounds = 3;

/** Medians in milliseconds, of Millrace and the bare table in turn. */
export async function bulkUpdate(database: BenchDatabase, progress: (message: string) => void): Promise<Result[]> {
  const { owner } = database;
  await owner.query('create table public.bare_leads (like public.leads including all) with (fillfactor = 50)');
  const times = { millrace: [] as number[], floor: [] as number[] };
  const tables = { millrace: 'public.leads', floor: 'public.bare_leads' };
  for (let number = 1; number <= rounds; number += 1) {
    for (const engine of ['floor', 'millrace'] as const) {
      // The engine's tables first: emptying the leads would otherwise delete their runs one by one.
      await owner.query('truncate millrace.runs, millrace.attempts, millrace.claims, millrace.wake_ups');
      await owner.query(`truncate ${tables[engine]}`);
      await owner.query(
        `insert into ${tables[engine]} (email, company_url, account_id)
         select 'person' || i || '@example.com', 'https://example.com/' || i, gen_random_uuid() from generate_series(1, $1::int) i`,
        [leads],
      );
      await owner.query(`vacuum analyze ${tables[engine]}`);
      await database.superuser.query('checkpoint');
      const started = performance.now();
      await owner.query(`update ${tables[engine]} set scrape_status = 'queued'`);
      const took = performance.now() - started;
      times[engine].push(took);
      progress(`intake ${number}/${rounds}: update of ${leads} leads, ${engine}: ${round(took)} ms`);
    }
  }
  await owner.query('drop table public.bare_leads');
  return (['millrace', 'floor'] as const).map((engine) => ({
    work: 'intake update',
    engine,
    variant: `${leads.toLocaleString('en-US')} leads in one statement${engine === 'floor' ? ', bare table' : ''}`,
    value: round(median(times[engine])),
    unit: 'ms',
  }));
}
