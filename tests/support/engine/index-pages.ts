// How much of a table's indexes a session reads: what walks one returns as few rows as what looks one up, and reads all its pages.
import type pg from 'pg';
import type { Engine } from '../engine.ts';

/**
 * How many pages of a table's indexes a session reads by `work`. It is one transaction, whose counts nobody adds to: those of
 * the whole database grow with what other sessions did seconds before.
 */
export async function indexPages(
  engine: Engine,
  client: pg.Client,
  table: string,
  work: () => Promise<unknown>,
): Promise<number> {
  const indexes = await engine.rows('select indexrelid::int as id from pg_index where indrelid = $1::regclass', [
    table,
  ]);
  const pages = async () => {
    const sum = 'select sum(pg_stat_get_xact_blocks_fetched(i))::int as sum from unnest($1::oid[]) i';
    return (await client.query(sum, [indexes.map(({ id }) => id)])).rows[0].sum;
  };
  await client.query('begin');
  const before = await pages();
  await work();
  const after = await pages();
  await client.query('commit');
  return after - before;
}
