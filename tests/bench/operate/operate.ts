// The operator's day in a large project: reads, pruning beside claims, and whether the tables come to a size.
import type { BenchDatabase } from '../database.ts';
import type { Result } from '../results.ts';
import { fill, sizeOf } from './fill.ts';
import { measureMonth } from './month.ts';
import { measurePruning } from './prune.ts';
import { measureReads } from './reads.ts';

/** `OPERATE_MILLIONS` of attempts (1), `OPERATE_RUNS_A_DAY` (100,000); pruning and the month are measured at one million alone. */
export async function operate(database: BenchDatabase, progress: (message: string) => void): Promise<Result[]> {
  const millions = Number(process.env.OPERATE_MILLIONS ?? 1);
  const runsADay = Number(process.env.OPERATE_RUNS_A_DAY ?? 100_000);
  const size = sizeOf(millions);
  const variant = `${size.attempts.toLocaleString('en-US')} attempts`;
  const month = millions === 1 ? await database.copy('month') : null;
  progress(`operate: writing ${variant}`);
  await fill(database.owner, size);
  const results = await measureReads(database.owner, variant, progress);
  if (!month) return results;
  results.push(...(await measurePruning(database, 1_000_000, progress)));
  return [...results, ...(await measureMonth(month.superuser, runsADay, progress))];
}
