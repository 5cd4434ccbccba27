// How many children a second each engine brings from their parent's start to its join: one parent spawns them, they do
// nothing but return 500 bytes, and one job is made ready once all are done.
import type { BenchDatabase } from '../database.ts';
import { type Entry, interleavedRounds } from '../interleaved-rounds.ts';
import type { Result } from '../results.ts';

// Compared engines stand side by side.
const entries: Entry[] = [
  ...[2_000, 50_000].flatMap((children) =>
    [50, 200].flatMap((batch) => [
      entry('millrace', batch, children),
      entry('floor', batch, children),
      entry('pg-boss', batch, children),
    ]),
  ),
  // At its speed 50,000 would take most of a minute a round.
  ...[2_000, 10_000].map((children) => entry('graphile-worker', 8, children)),
];

function entry(engine: string, batch: number, children: number): Entry {
  const how = engine === 'graphile-worker' ? 'local queue' : `batch ${batch}`;
  const variant = `${children.toLocaleString('en-US')} children, ${how}`;
  return { work: 'fan-out', engine, variant, batch, entities: children };
}

/** Measures the fan-out, each engine and variant in turn, several rounds. `node` runs the workers. */
export function fanOut(database: BenchDatabase, node: string, progress: (message: string) => void): Promise<Result[]> {
  const amount = (one: Entry) => one.entities;
  return interleavedRounds(entries, { database, node, unit: 'children', amount }, progress);
}
