// How many articles stand at each code: a table at a terminal, elsewhere a line every few seconds.
import type pg from 'pg';
import pc from 'picocolors';
import { type Watching, watcher } from '../watch-progress.ts';

const lineEveryMs = 3000;

/** How many articles stand at one code. */
export interface CodeCount {
  code: number;
  name: string;
  count: number;
}

/**
 * Shows the counts until every source has been polled to its end and every article rests: with a person, published, or at an
 * end. With `once` a source is switched off after its first poll. Resolves to whether that happened.
 */
export async function watchArticles(watching: Watching, once: boolean): Promise<boolean> {
  const { client } = watching;
  const watch = watcher(watching, {
    async read() {
      if (once)
        await client.query('update public.source set enabled = false where enabled and last_polled_at is not null');
      return { resting: await isResting(client), counts: await countByCode(client) };
    },
    end: ({ resting }) => (resting ? 'over' : undefined),
    table: ({ counts }, elapsedMs) => countsTable(counts, elapsedMs),
    lines: ({ counts }) => [{ key: 'articles', text: countsLine(counts) }],
    linesEveryMs: lineEveryMs,
  });
  return (await watch()) === 'over';
}

/** Resolves to how many articles stand at each code, in the order of the pipeline. */
export async function countByCode(client: pg.Client): Promise<CodeCount[]> {
  const { rows } = await client.query<CodeCount>(
    `select q.status_code as code, coalesce(l.name, '') as name, count(*)::int as count
     from public.ingestion_queue q left join public.status_lookup l on l.code = q.status_code
     group by q.status_code, l.name, l.sort_order order by l.sort_order, q.status_code`,
  );
  return rows;
}

async function isResting(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ resting: boolean }>(
    `select not exists (select from public.source s
         where s.enabled and (s.last_polled_at is null or jsonb_typeof(s.cursor -> 'pass') = 'object'))
       and not exists (select from public.ingestion_queue q where q.status_code < 300 or q.status_code = 330) as resting`,
  );
  return rows[0]?.resting ?? false;
}

/** Returns the counts as a table, one string for each line. */
export function countsTable(counts: CodeCount[], elapsedMs: number): string[] {
  const rows = counts.map(({ code, name, count }) => {
    const line = `  ${String(code).padStart(4)}  ${name.padEnd(20)}${String(count).padStart(5)}`;
    return code >= 500 ? pc.red(line) : code >= 300 ? pc.green(line) : pc.yellow(line);
  });
  return [pc.dim('  code  name                count'), ...rows, pc.dim(`  ${(elapsedMs / 1000).toFixed(1)} s`)];
}

/** Returns the counts as one line, in words. */
export function countsLine(counts: CodeCount[]): string {
  return counts.map(({ name, count }) => `${count} ${name.replaceAll('_', ' ')}`).join(', ') || 'no articles yet';
}
