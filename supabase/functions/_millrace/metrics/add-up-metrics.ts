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

/** Adds up the outcomes of each stage, which follow each other, in so many buckets. */
function addUp(outcomes: MetricsAnswer['counters'], bucketCount: number): Counter[] {
  const counters: Counter[] = [];
  for (const [pipeline, stage, outcome, n, runMs, runs, waitMs, waits, cost, input, output] of outcomes) {
    const last = counters.at(-1);
    const counter =
      last?.pipeline === pipeline && last.stage === stage ? last : emptyCounter(pipeline, stage, bucketCount);
    if (counter !== last) counters.push(counter);
    counter.outcomes[outcome] = n;
    addTimes(counter.run_seconds, runMs, runs);
    addTimes(counter.wait_seconds, waitMs, waits);
    counter.cost_usd += cost;
    counter.input_tokens += input;
    counter.output_tokens += output;
  }
  return counters;
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
