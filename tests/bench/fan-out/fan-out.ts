// How many children a second each engine brings from their parent's start to its join: one parent spawns them, they do
// nothing but return 500 bytes, and one job is made ready once all are done.
import { runRound } from '../chain/run-round.ts';
import type { BenchDatabase } from '../database.ts';
import type { Task } from '../engine.ts';
import { median, type Result, round } from '../results.ts';

const workers = 4;
const rounds = 3;

type Entry = Omit<Task, 'urls'>;

// What is compared stands side by side, so that a machine which slows down for a while slows down both.
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
export async function fanOut(
  database: BenchDatabase,
  node: string,
  progress: (message: string) => void,
): Promise<Result[]> {
  const rates = new Map<Entry, number[]>(entries.map((one) => [one, []]));
  for (let number = 1; number <= rounds; number += 1) {
    for (const one of entries) {
      const seconds = await runRound(node, { ...one, urls: database.urls }, workers);
      const rate = one.entities / seconds;
      rates.get(one)?.push(rate);
      progress(`fan-out ${number}/${rounds}: ${one.engine}, ${one.variant}: ${round(rate)} children/s`);
    }
  }
  return entries.map((one) => ({
    work: one.work,
    engine: one.engine,
    variant: one.variant,
    value: round(median(rates.get(one) as number[])),
    unit: 'children/s',
  }));
}
