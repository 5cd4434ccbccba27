// The text of metrics: an isolate writes it anew only for stages whose figures changed since its last scrape.
import { expect, test } from 'vitest';
import type { MetricsAnswer } from '../../supabase/functions/_millrace/engine/metrics-contract.ts';
import { addUpMetrics } from '../../supabase/functions/_millrace/metrics/add-up-metrics.ts';
import { writeMetrics } from '../../supabase/functions/_millrace/metrics/write-metrics.ts';

type Outcome = MetricsAnswer['counters'][0];
const outcome = (stage: string | null, ended: string, n: number): Outcome => [
  'flow',
  stage,
  ended,
  n,
  n * 1000,
  [n, 0],
  n * 500,
  [0, n],
  n / 4,
  n * 10,
  n,
];
const answerOf = (counters: Outcome[], bounds = [0.5]): MetricsAnswer => ({
  ...{ release: '0.2.0', level: 2, bounds, counters, stages: [] },
  ...{ sweep_age_seconds: null, alerts: [], messages: [] },
});
const both = (answer: MetricsAnswer) => {
  const metrics = addUpMetrics(answer);
  return {
    counters: metrics.counters,
    text: writeMetrics(metrics, 'text'),
    open: writeMetrics(metrics, 'openmetrics'),
  };
};
/** As an isolate writes it that knows of no earlier scrape. */
const anew = (answer: MetricsAnswer) => {
  addUpMetrics(answerOf([]));
  return both(answer);
};

const first = answerOf([
  ...[outcome(null, 'completed', 2), outcome('read', 'completed', 3), outcome('read', 'failed', 1)],
  outcome('write', 'completed', 2),
]);

test.each<[string, MetricsAnswer]>([
  ['an outcome grew', answerOf(first.counters.with(2, outcome('read', 'failed', 2)))],
  ['an outcome came', answerOf([...first.counters, outcome('write', 'failed', 1)])],
  ['one bucket grew', answerOf(first.counters.with(3, outcome('write', 'completed', 2).with(7, [1, 1]) as Outcome))],
  ['a stage went', answerOf(first.counters.toSpliced(1, 2))],
  ['a bound moved', answerOf(first.counters, [0.7])],
  ['a bucket was added', answerOf(first.counters, [0.5, 1])],
  ['nothing changed', first],
])('a scrape after another writes what the first one would have: %s', (_what, second) => {
  const { text, open } = anew(second);
  anew(first);
  const after = both(second);
  expect(after.text).toBe(text);
  expect(after.open).toBe(open);
});

test('a stage whose figures are those of the last scrape is not written anew, and any other is', () => {
  const [runs, read, write] = anew(first).counters;
  const later = both(structuredClone(answerOf(first.counters.with(3, outcome('write', 'completed', 3))))).counters;
  expect(later[0]).toBe(runs);
  expect(later[1]).toBe(read);
  expect(later[2]).not.toBe(write);
});
