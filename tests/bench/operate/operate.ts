// The operator's day in a large project: reads, pruning beside claims, and whether the tables come to a size.
import type { BenchDatabase } from '../database.ts';
import type { Result } from '../results.ts';
import { fill, sizeOf } from './fill.ts';
import { measureMonth } from './month.ts';
import { measurePage } from './page.ts';
import { measurePruning } from './prune.ts';
import { measureReads } from './reads.ts';
import { measureWrites } from './writes.ts';

/**
 * `OPERATE_MILLIONS` of attempts (1) are read, by themselves and by the page; a million runs are pruned; a month has `OPERATE_RUNS_A_DAY` (100,000).
 * `OPERATE_PARTS=page,reads,writes,prune,month` leaves parts out.
 */
export async function operate(database: BenchDatabase, progress: (message: string) => void): Promise<Result[]> {
  const parts = (process.env.OPERATE_PARTS ?? 'page,reads,writes,prune,month').split(',');
  const size = sizeOf(Number(process.env.OPERATE_MILLIONS ?? 1));
  const variant = `${size.attempts.toLocaleString('en-US')} attempts`;
  const results: Result[] = [];
  const add = (found: Result[]) => {
    results.push(...found);
    for (const { work, engine, value, unit } of found) progress(`${work}, ${engine}: ${value} ${unit}`);
  };
  // Copied before the other database is filled.
  const month = parts.includes('month') ? await database.copy('month') : null;
  if (parts.includes('page')) add(await measurePage(size, variant, progress));
  if (parts.some((part) => part !== 'month' && part !== 'page')) {
    progress(`operate: writing ${variant}`);
    await fill(database.owner, size);
  }
  if (parts.includes('reads')) add(await measureReads(database.owner, variant));
  if (parts.includes('writes')) add(await measureWrites(database.owner, variant));
  if (parts.includes('prune')) add(await measurePruning(database, 1_000_000, progress));
  const runsADay = Number(process.env.OPERATE_RUNS_A_DAY ?? 100_000);
  if (month) add(await measureMonth(month.superuser, runsADay, progress));
  return results;
}
