// How many transitions a second each engine makes: entities through five stages that do nothing but return 500 bytes.
import type { BenchDatabase } from '../database.ts';
import { stageNames, type Task } from '../engine.ts';
import { median, type Result, round } from '../results.ts';
import { runRound } from './run-round.ts';
import { singleLead } from './single-lead.ts';

const workers = 4;
const rounds = 3;

type Entry = Omit<Task, 'urls'>;

// What is compared stands side by side, so that a machine which slows down for a while slows down both.
const entries: Entry[] = [
  ...[10, 50, 200].flatMap((batch) => [
    entry('millrace', `projection columns, batch ${batch}`, batch, batch === 10 ? 2000 : 4000),
    entry('floor', `two calls, batch ${batch}`, batch, 4000),
    ...(batch === 10 ? [] : [entry('pg-boss', `batch ${batch}`, batch, 4000)]),
  ]),
  entry('millrace', 'projection none, batch 50', 50, 4000),
  ...[50, 200].map((batch) => entry('floor', `one call, batch ${batch}`, batch, 4000)),
  entry('graphile-worker', 'local queue', 8, 400),
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
  const rates = new Map<Entry, number[]>(entries.map((one) => [one, []]));
  for (let number = 1; number <= rounds; number += 1) {
    for (const one of entries) {
      const seconds = await runRound(node, { ...one, urls: database.urls }, workers);
      const rate = (one.entities * stageNames.length) / seconds;
      rates.get(one)?.push(rate);
      progress(`chain ${number}/${rounds}: ${one.engine}, ${one.variant}: ${round(rate)} transitions/s`);
    }
  }
  const results = entries.map((one) => ({
    work: 'chain',
    engine: one.engine,
    variant: one.variant,
    value: round(median(rates.get(one) as number[])),
    unit: 'transitions/s',
  }));
  return [...results, ...(await singleLead(database, progress))];
}
