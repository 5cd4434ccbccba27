// Rounds of several engines and variants in turn, so that a machine which slows down for a while slows down all of them.
import { runRound } from './chain/run-round.ts';
import type { BenchDatabase } from './database.ts';
import type { Task } from './engine.ts';
import { median, type Result, round } from './results.ts';

const workers = 4;
const rounds = 3;

export type Entry = Omit<Task, 'urls'>;

/** Measures each entry once a round; its value is the median of its `unit` a second, `amount` of them a round. */
export async function interleavedRounds(
  entries: Entry[],
  run: { database: BenchDatabase; node: string; unit: string; amount: (entry: Entry) => number },
  progress: (message: string) => void,
): Promise<Result[]> {
  const rates = new Map<Entry, number[]>(entries.map((one) => [one, []]));
  for (let number = 1; number <= rounds; number += 1) {
    for (const one of entries) {
      const seconds = await runRound(run.node, { ...one, urls: run.database.urls }, workers);
      const rate = run.amount(one) / seconds;
      rates.get(one)?.push(rate);
      progress(`${one.work} ${number}/${rounds}: ${one.engine}, ${one.variant}: ${round(rate)} ${run.unit}/s`);
    }
  }
  return entries.map((one) => ({
    work: one.work,
    engine: one.engine,
    variant: one.variant,
    value: round(median(rates.get(one) as number[])),
    unit: `${run.unit}/s`,
  }));
}
