// How far the leads are: a table at a terminal, elsewhere a line for each change.
import type pg from 'pg';
import pc from 'picocolors';
import { type Watching, watcher } from '../watch-progress.ts';

const columns = ['queued', 'started', 'completed', 'failed'] as const;
type Column = (typeof columns)[number];
const colours: Record<Column, (text: string) => string> = {
  queued: pc.yellow,
  started: pc.cyan,
  completed: pc.green,
  failed: pc.red,
};

/** How many leads stand where, at one stage. */
export type StageCounts = { stage: string } & Record<Column, number>;

/** Shows the leads at `stages` until no run is under way any more. Resolves to whether that happened. */
export async function watchLeads(watching: Watching, stages: string[]): Promise<boolean> {
  const { client } = watching;
  const watch = watcher(watching, {
    // In this order, so that the last table counts what is there when nothing runs any more.
    read: async () => ({ running: await countRunning(client), counts: await countStages(client, stages) }),
    end: ({ running }) => (running === 0 ? 'over' : undefined),
    table: ({ counts }, elapsedMs) => progressTable(counts, elapsedMs),
    lines: ({ counts }) =>
      counts.flatMap((row) => {
        const parts = columns.filter((column) => row[column] > 0).map((column) => `${row[column]} ${column}`);
        return parts.length > 0 ? [{ key: row.stage, text: `${row.stage.padEnd(10)} ${parts.join(', ')}` }] : [];
      }),
  });
  return (await watch()) === 'over';
}

async function countRunning(client: pg.Client): Promise<number> {
  const { rows } = await client.query("select count(*)::int as n from millrace.runs where status = 'running'");
  return rows[0].n;
}

async function countStages(client: pg.Client, stages: string[]): Promise<StageCounts[]> {
  const { rows } = await client.query<{ stage: string; status: string; n: number }>(
    `select s.stage, to_jsonb(l) ->> (s.stage || '_status') as status, count(*)::int as n
     from public.leads l cross join unnest($1::text[]) as s(stage) group by 1, 2`,
    [stages],
  );
  return stages.map((stage) => {
    const count = (status: string) => rows.find((row) => row.stage === stage && row.status === status)?.n ?? 0;
    return {
      stage,
      queued: count('queued'),
      started: count('started'),
      completed: count('completed'),
      failed: count('failed'),
    };
  });
}

/** Returns the progress table, one string for each line. Shows a nought as a dot, so that what moves stands out. */
export function progressTable(counts: StageCounts[], elapsedMs: number): string[] {
  const width = Math.max(...counts.map(({ stage }) => stage.length), 5) + 2;
  const cell = (text: string) => text.padStart(11);
  const head = pc.dim(`  ${'stage'.padEnd(width)}${columns.map(cell).join('')}`);
  const rows = counts.map((row) => {
    const cells = columns.map((column) =>
      row[column] === 0 ? pc.dim(cell('·')) : colours[column](cell(String(row[column]))),
    );
    return `  ${row.stage.padEnd(width)}${cells.join('')}`;
  });
  return [head, ...rows, pc.dim(`  ${(elapsedMs / 1000).toFixed(1)} s`)];
}
