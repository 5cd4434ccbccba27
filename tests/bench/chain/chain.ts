// How many transitions a second each engine makes: entities through five stages that do nothing but return 500 bytes.
import type { BenchDatabase } from '../database.ts';
import { stageNames } from '../engine.ts';
import { type Entry, interleavedRounds } from '../interleaved-rounds.ts';
import type { Result } from '../results.ts';
import { singleLead } from './single-lead.ts';

// Compared engines stand side by side. Rounds take several seconds, so that what a new connection has to learn (plans, catalogs)
// weighs little, and a queue that slows down as it fills shows it.
const entries: Entry[] = [
  ...[10, 50, 200].flatMap((batch) => [
    entry('millrace', `projection columns, batch ${batch}`, batch, batch === 10 ? 4_000 : 12_000),
    entry('floor', `two calls, batch ${batch}`, batch, 12_000),
    ...(batch === 10 ? [] : [entry('pg-boss', `batch ${batch}`, batch, 12_000)]),
  ]),
  entry('millrace', 'projection none, batch 50', 50, 12_000),
  entry('millrace', 'projection status, batch 50', 50, 12_000),
  entry('millrace', 'projection status with history, batch 50', 50, 12_000),
  ...[50, 200].map((batch) => entry('floor', `one call, batch ${batch}`, batch, 12_000)),
  entry('graphile-worker', 'local queue', 8, 1_000),
];

function entry(engine: string, variant: string, batch: number, entities: number): Entry {
  return { work: 'chain', engine, variant, batch, entities };
}

/** Measures the chain, each engine and variant in turn, several rounds. `node` runs the workers. */
export async function chain(
  database: BenchDatabase,
  node: string,
  progress: (message: string) => void,
): Promise<Result[]> {
  const amount = (one: Entry) => one.entities * stageNames.length;
  const results = await interleavedRounds(entries, { database, node, unit: 'transitions', amount }, progress);
  return [...results, ...(await singleLead(database, progress))];
}
