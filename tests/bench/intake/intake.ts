// The cost of queueing many entities at once, and of claiming when very many are queued.
import type { BenchDatabase } from '../database.ts';
import type { Result } from '../results.ts';
import { bulkUpdate } from './bulk-update.ts';
import { claimCost } from './claim-cost.ts';
import { limitedClaim } from './limited-claim.ts';
import { statusUpdate } from './status-update.ts';

/** Measures the bulk updates, then the claim, without limits and with them. */
export async function intake(database: BenchDatabase, progress: (message: string) => void): Promise<Result[]> {
  return [
    ...(await bulkUpdate(database, progress)),
    ...(await statusUpdate(database, progress)),
    ...(await claimCost(database, progress)),
    ...(await limitedClaim(database, progress)),
  ];
}
