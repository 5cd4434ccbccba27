// The measures of a trial, with the numbers of the local stack, measured on two busy cores on 28 November 2026. The
// report shows both.

/** A line of the report: a measure, the stand-in's number and the bounds of hosted's. */
export interface Expectation {
  what: string;
  unit: string;
  /** The number that the local stack measured. */
  standIn: number;
  /** `least`, `most`: outside of these bounds the report says that hosted differs. */
  least: number;
  most: number;
  /** The page that has the number. */
  page: string;
}

const benchmark = 'docs/benchmark.md';
const costs = 'docs/costs.md';
const localStack = 'docs/local-stack.md';

const line = (what: string, unit: string, standIn: number, [least, most]: [number, number], page: string) => ({
  ...{ what, unit, standIn, least, most, page },
});

export const expectations = {
  first_begun: line(
    'the first row, from its update to its handler, by a cold function',
    'ms',
    4200,
    [0, 6000],
    benchmark,
  ),
  row_p50: line(
    'what one row through a page, a job and a model takes beyond these, median',
    'ms',
    960,
    [0, 3000],
    benchmark,
  ),
  row_p95: line('the same, p95', 'ms', 1500, [0, 6000], benchmark),
  hop_p50: line("from a stage's end to the next handler, median", 'ms', 160, [0, 500], benchmark),
  hop_p95: line('the same, p95', 'ms', 400, [0, 1500], benchmark),
  burst_rate: line('rows a second through the three stages, all queued at once', 'rows/s', 9, [3, 1000], benchmark),
  plain_calls: line('invocations for 1,000 rows at a plain stage, all at once', 'calls', 20, [0, 100], costs),
  waiting_calls: line(
    'invocations for 1,000 rows at a waiting stage, callbacks among them',
    'calls',
    2060,
    [1900, 2500],
    costs,
  ),
  model_calls: line('invocations for 1,000 rows at a stage that asks a model', 'calls', 18, [0, 300], costs),
  single_calls: line('invocations for one row on an idle system, all three stages', 'calls', 5, [4, 8], costs),
  cpu_retried: line(
    'a row whose handler used up its CPU, until its next attempt begins',
    'ms',
    34_000,
    [0, 90_000],
    localStack,
  ),
  lost_begun: line('a row whose wake-up was lost, until its handler begins', 'ms', 5000, [0, 30_000], localStack),
  upgrade_failed: line(
    'rows that failed while functions and definition were exchanged',
    'rows',
    0,
    [0, 0],
    'docs/upgrading.md',
  ),
  pause_begun: line('rows that began while the pipeline was paused', 'rows', 0, [0, 0], 'docs/operate.md'),
  idle_calls: line('invocations in an idle hour', 'calls', 0, [0, 10], costs),
  idle_jobs: line('runs of cron jobs in an idle hour', 'runs', 359, [0, 2000], costs),
  idle_log: line('write-ahead log of an idle day', 'MB', 120, [0, 500], costs),
  // The stack has no branches: a first row's times stand in.
  branch_row: line('the same for the first row on a new preview branch', 'ms', 5200, [0, 12_000], 'docs/deploying.md'),
} satisfies Record<string, Expectation>;

export type Measure = keyof typeof expectations;

/** The findings of a trial: a number for each measure that it took, and the reason why it did not take another. */
export interface Findings {
  measured: Partial<Record<Measure, number>>;
  untried: { what: string; why: string }[];
}

/** Returns whether what was measured lies outside of what the page says. */
export const differs = (measure: Measure, found: number) =>
  found < expectations[measure].least || found > expectations[measure].most;
