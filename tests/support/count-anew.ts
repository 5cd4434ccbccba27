// Figures for a test that writes attempts and runs itself, past the engine that would have counted them.
import fs from 'node:fs';
import path from 'node:path';
import type pg from 'pg';

const structure = path.join(import.meta.dirname, '..', '..', 'engine', 'structure', '0016_figures.sql');

/** Counts the attempts and runs that are there as an upgrade counts those that were there before it, and forgets all else. */
export async function countAnew(client: pg.Client): Promise<void> {
  const counting = fs.readFileSync(structure, 'utf8').match(/^insert into millrace\.totals[^;]*;/gm) ?? [];
  if (counting.length !== 2)
    throw new Error(`${structure} counts attempts and runs in ${counting.length} statements, not 2`);
  const tables = ['pulses', 'minutes', 'hours', 'totals'].map((name) => `delete from millrace.${name};`);
  await client.query(['begin;', ...tables, ...counting, 'commit;'].join('\n'));
}
