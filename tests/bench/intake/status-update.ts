// One update of 100,000 articles to `to_fetch`, against the same update of a copy of the table that has no triggers.
import { performance } from 'node:perf_hooks';
import type { BenchDatabase } from '../database.ts';
import { median, type Result, round } from '../results.ts';

const articles = 100_000;
const rounds = 3;
const toFetch = 110;

/** Medians in milliseconds, of Millrace and the bare table in turn. */
export async function statusUpdate(database: BenchDatabase, progress: (message: string) => void): Promise<Result[]> {
  const { owner } = database;
  await owner.query(
    'create table public.bare_articles (like public.ingestion_queue including all) with (fillfactor = 70)',
  );
  const tables = { millrace: 'public.ingestion_queue', floor: 'public.bare_articles' };
  const times = { millrace: [] as number[], floor: [] as number[] };
  for (let number = 1; number <= rounds; number += 1) {
    for (const engine of ['floor', 'millrace'] as const) {
      await empty(owner, tables[engine]);
      // As rows that were there before the pipeline: an old status, and no code.
      await owner.query(
        `insert into ${tables[engine]} (url, entered_as, status)
         select 'https://example.com/' || i, 'discovered', 'new' from generate_series(1, $1::int) i`,
        [articles],
      );
      await owner.query(`vacuum analyze ${tables[engine]}`);
      await database.superuser.query('checkpoint');
      const started = performance.now();
      await owner.query(`update ${tables[engine]} set status_code = ${toFetch}`);
      const took = performance.now() - started;
      times[engine].push(took);
      progress(`intake ${number}/${rounds}: update of ${articles} articles, ${engine}: ${round(took)} ms`);
    }
  }
  await owner.query('drop table public.bare_articles');
  await empty(owner, tables.millrace);
  return (['millrace', 'floor'] as const).map((engine) => ({
    work: 'intake status',
    engine,
    variant: `${articles.toLocaleString('en-US')} articles to ${toFetch}${engine === 'floor' ? ', bare table' : ', with history'}`,
    value: round(median(times[engine])),
    unit: 'ms',
  }));
}

/** The engine's tables first: emptying the articles would otherwise delete their runs one by one. */
async function empty(owner: BenchDatabase['owner'], table: string): Promise<void> {
  await owner.query('truncate millrace.runs, millrace.attempts, millrace.claims, millrace.wake_ups');
  await owner.query(`truncate ${table} cascade`);
}
