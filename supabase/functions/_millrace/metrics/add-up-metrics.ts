import type { MetricsAnswer } from '../engine/metrics-contract.ts';

/** Times in seconds: their sum, and how many lie below each bound and above the one before. */
interface Times {
  sum: number;
  buckets: number[];
}

/** The counters of a stage, or of a pipeline as a whole. */
interface Counter {
  pipeline: string;
  /** Null for the pipeline as a whole. */
  stage: string | null;
  outcomes: Record<string, number>;
  run_seconds: Times;
  wait_seconds: Times;
  cost_usd: number;
  input_tokens: number;
  output_tokens: number;
}

type Outcome = MetricsAnswer['counters'][0];

/** The counters of the last scrape by stage, with the outcomes they were added up from. */
let lastCounters = new Map<string, { outcomes: Outcome[]; counter: Counter }>();

/**
 * Adds up the outcomes of each stage, which follow each other, in so many buckets. A stage whose outcomes are those of the
 * last scrape keeps its object, so that its text need not be written again.
 */
function addUp(outcomes: Outcome[], bucketCount: number): Counter[] {
  const counters = new Map<string, { outcomes: Outcome[]; counter: Counter }>();
  for (let from = 0, to = 0; from < outcomes.length; from = to) {
    const [pipeline, stage] = outcomes[from] as Outcome;
    while (outcomes[to]?.[0] === pipeline && outcomes[to]?.[1] === stage) to++;
    const own = outcomes.slice(from, to);
    const key = JSON.stringify([pipeline, stage]);
    const last = lastCounters.get(key);
    const isSame = last?.counter.run_seconds.buckets.length === bucketCount && areEqual(last.outcomes, own);
    counters.set(key, isSame ? last : { outcomes: own, counter: addUpStage(own, bucketCount) });
  }
  lastCounters = counters;
  return [...counters.values()].map(({ counter }) => counter);
}

function areEqual(a: unknown[], b: unknown[]): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index++) {
    const [one, other] = [a[index], b[index]];
    if (one !== other && !(Array.isArray(one) && Array.isArray(other) && areEqual(one, other))) return false;
  }
  return true;
}

/** Adds up the outcomes of one stage, or of one pipeline as a whole. */
function addUpStage(outcomes: Outcome[], bucketCount: number): Counter {
  const [pipeline, stage] = outcomes[0] as Outcome;
  const counter = emptyCounter(pipeline, stage, bucketCount);
  for (const [, , outcome, n, runMs, runs, waitMs, waits, cost, input, output] of outcomes) {
    counter.outcomes[outcome] = n;
    addTimes(counter.run_seconds, runMs, runs);
    addTimes(counter.wait_seconds, waitMs, waits);
    counter.cost_usd += cost;
    counter.input_tokens += input;
    counter.output_tokens += output;
  }
  return counter;
}

const emptyCounter = (pipeline: string, stage: string | null, bucketCount: number): Counter => ({
  pipeline,
  stage,
  outcomes: {},
  run_seconds: { sum: 0, buckets: Array<number>(bucketCount).fill(0) },
  wait_seconds: { sum: 0, buckets: Array<number>(bucketCount).fill(0) },
  cost_usd: 0,
  input_tokens: 0,
  output_tokens: 0,
});

function addTimes(times: Times, ms: number, counts: number[]): void {
  times.sum += ms / 1000;
  const { buckets } = times;
  for (let index = 0; index < counts.length; index++) buckets[index] = (buckets[index] ?? 0) + (counts[index] ?? 0);
}

/** The engine's figures, with the counters of each stage added up. */
export type Metrics = Omit<MetricsAnswer, 'counters'> & { counters: Counter[] };

/** Adds up the outcomes of each stage. */
export const addUpMetrics = (answer: MetricsAnswer): Metrics => ({
  ...answer,
  counters: addUp(answer.counters, answer.bounds.length + 1),
});
