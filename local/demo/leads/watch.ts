// Shows the progress of leads: at a terminal as a table that it redraws in place, elsewhere as a line for each change.
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import pc from 'picocolors';

const everyMs = 150;
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

export interface WatchOptions {
  client: pg.Client;
  /** The stages, each with its status column, in order. */
  stages: string[];
  /** Milliseconds after which it gives up. */
  limitMs: number;
  /** Gives up at once when aborted. */
  signal: AbortSignal;
  out: NodeJS.WriteStream;
}

/** Shows progress until no run is under way any more. Resolves to whether that happened within the limit. */
export async function watchLeads({ client, stages, limitMs, signal, out }: WatchOptions): Promise<boolean> {
  const started = Date.now();
  const show = out.isTTY ? tableOn(out) : linesOn(out);
  for (;;) {
    // In this order, so that the last table counts what is there when nothing runs any more.
    const running = await countRunning(client);
    show(await countStages(client, stages), Date.now() - started);
    if (running === 0) return true;
    if (signal.aborted || Date.now() - started > limitMs) return false;
    await delay(everyMs, undefined, { signal }).catch(() => {});
  }
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

/** The progress table, one string for each line. Shows a nought as a dot, so that what moves stands out. */
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

function tableOn(out: NodeJS.WriteStream): (counts: StageCounts[], elapsedMs: number) => void {
  let drawn = 0;
  return (counts, elapsedMs) => {
    const lines = progressTable(counts, elapsedMs);
    const up = drawn ? `\x1b[${drawn}A` : '';
    // Clears each line to its end and writes all at once, so that nothing flickers.
    out.write(`${up}${lines.map((line) => `${line}\x1b[K\n`).join('')}`);
    drawn = lines.length;
  };
}

function linesOn(out: NodeJS.WriteStream): (counts: StageCounts[], elapsedMs: number) => void {
  const last = new Map<string, string>();
  return (counts, elapsedMs) => {
    for (const row of counts) {
      const parts = columns.filter((column) => row[column] > 0).map((column) => `${row[column]} ${column}`);
      const text = parts.join(', ');
      if (text && last.get(row.stage) !== text) {
        out.write(`  ${(elapsedMs / 1000).toFixed(1).padStart(5)} s  ${row.stage.padEnd(10)} ${text}\n`);
      }
      last.set(row.stage, text);
    }
  };
}
