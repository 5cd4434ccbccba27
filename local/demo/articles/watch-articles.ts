// Shows how many articles stand at each code: at a terminal as a table that it redraws in place, elsewhere as a line for each change.
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import pc from 'picocolors';

const everyMs = 200;

/** How many articles stand at one code. */
export interface CodeCount {
  code: number;
  name: string;
  count: number;
}

export interface WatchArticlesOptions {
  client: pg.Client;
  /** Milliseconds without any change after which it gives up. */
  limitMs: number;
  /** Gives up at once when aborted. */
  signal: AbortSignal;
  out: NodeJS.WriteStream;
}

/**
 * Shows the counts until every source has been polled to its end and every article rests: with a person, published, or at an
 * end. Resolves to whether that happened.
 */
export async function watchArticles({ client, limitMs, signal, out }: WatchArticlesOptions): Promise<boolean> {
  const started = Date.now();
  const show = out.isTTY ? tableOn(out) : linesOn(out);
  let last = '';
  let changedAt = started;
  for (;;) {
    const resting = await isResting(client);
    const counts = await countByCode(client);
    show(counts, Date.now() - started);
    if (resting) return true;
    const now = JSON.stringify(counts);
    if (now !== last) changedAt = Date.now();
    last = now;
    if (signal.aborted || Date.now() - changedAt > limitMs) return false;
    await delay(everyMs, undefined, { signal }).catch(() => {});
  }
}

/** How many articles stand at each code, in the order of the pipeline. */
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

/** The counts as a table, one string for each line. */
export function countsTable(counts: CodeCount[], elapsedMs: number): string[] {
  const rows = counts.map(({ code, name, count }) => {
    const line = `  ${String(code).padStart(4)}  ${name.padEnd(20)}${String(count).padStart(5)}`;
    return code >= 500 ? pc.red(line) : code >= 300 ? pc.green(line) : pc.yellow(line);
  });
  return [pc.dim('  code  name                count'), ...rows, pc.dim(`  ${(elapsedMs / 1000).toFixed(1)} s`)];
}

function tableOn(out: NodeJS.WriteStream): (counts: CodeCount[], elapsedMs: number) => void {
  let drawn = 0;
  return (counts, elapsedMs) => {
    const lines = countsTable(counts, elapsedMs);
    const up = drawn ? `\x1b[${drawn}A` : '';
    // A table that has become shorter leaves nothing of the longer one.
    out.write(`${up}${lines.map((line) => `${line}\x1b[K\n`).join('')}\x1b[J`);
    drawn = lines.length;
  };
}

function linesOn(out: NodeJS.WriteStream): (counts: CodeCount[], elapsedMs: number) => void {
  const last = new Map<number, number>();
  return (counts, elapsedMs) => {
    for (const { code, name, count } of counts) {
      if (last.get(code) === count) continue;
      out.write(
        `  ${(elapsedMs / 1000).toFixed(1).padStart(5)} s  ${String(code).padStart(3)} ${name.padEnd(20)} ${count}\n`,
      );
    }
    last.clear();
    for (const { code, count } of counts) last.set(code, count);
  };
}
