import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';

/** Asks every few milliseconds until the statement's column `met` is true. Throws after `patienceMs`, naming `what`. */
export async function until(
  client: pg.Client,
  what: string,
  statement: string,
  {
    values = [],
    patienceMs = 60_000,
    everyMs = 20,
  }: { values?: unknown[]; patienceMs?: number; everyMs?: number } = {},
): Promise<void> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const { rows } = await client.query<{ met: boolean }>(statement, values);
    if (rows[0]?.met) return;
    if (Date.now() > deadline) throw new Error(`Not within ${patienceMs / 1000} s: ${what}.`);
    await delay(everyMs);
  }
}

export const everyWorkerHasLeft = 'select not exists (select from millrace.workers where left_at is null) as met';
export const nothingRuns = `select not exists (select from millrace.runs where status = 'running') as met`;
