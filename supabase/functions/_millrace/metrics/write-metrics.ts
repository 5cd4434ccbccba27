import type { Metrics } from './add-up-metrics.ts';

type Labels = Record<string, string | null | undefined>;

/** The two forms in which monitoring systems read metrics; they differ in what a counter's family is called. */
export type Format = 'openmetrics' | 'text';

interface Family {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  help: string;
  /** The text of a sample, or of several lines, without the name of its family at its beginning: `_total{stage="a"} 1`. */
  samples: string[];
}

/** Writes what the engine tells as OpenMetrics, or in Prometheus's text format. */
export function writeMetrics(metrics: Metrics, format: Format): string {
  const parts: string[] = [];
  for (const { name, type, help, samples } of [...counterFamilies(metrics), ...gaugeFamilies(metrics)]) {
    if (samples.length === 0) continue;
    const family = format === 'text' && type === 'counter' ? `${name}_total` : name;
    parts.push(`# TYPE ${family} ${type}\n# HELP ${family} ${escapeText(help)}`);
    for (const sample of samples) parts.push(name + sample);
  }
  parts.push(format === 'openmetrics' ? '# EOF\n' : '');
  return parts.join('\n');
}

/** In the order in which they are written; the engine counts more, such as attempts that were removed. */
const outcomesShown = ['completed', 'ended', 'failed', 'retried', 'skipped', 'cancelled'];

type Counter = Metrics['counters'][0];

/** The samples of a stage, or of a pipeline as a whole, by family: one text each, whose lines begin with the family's name. */
interface Written {
  bounds: string;
  ended: string;
  cost: string;
  tokens: string;
  run_seconds: string;
  wait_seconds: string;
}

/** The text of counters that an earlier scrape has written. addUpMetrics() returns the same object for the same figures. */
const writtenBefore = new WeakMap<Counter, Written>();

function counterFamilies({ counters, bounds }: Metrics): Family[] {
  const ends = [...bounds.map(numberOf), '+Inf'].map((bound) => `,le="${bound}"} `);
  const key = ends.join('');
  const stages: Written[] = [];
  const runs: Written[] = [];
  for (const counter of counters) {
    let text = writtenBefore.get(counter);
    if (text?.bounds !== key) {
      text = writeCounter(counter, ends, key);
      writtenBefore.set(counter, text);
    }
    (counter.stage === null ? runs : stages).push(text);
  }
  const family = (
    name: string,
    help: string,
    of: Written[],
    field: keyof Written,
    type: Family['type'] = 'counter',
  ): Family => ({ name, type, help, samples: of.map((text) => text[field]) });
  return [
    family('millrace_attempts', 'Attempts that ended, by outcome.', stages, 'ended'),
    family('millrace_runs', 'Runs that ended, by outcome.', runs, 'ended'),
    family('millrace_cost_usd', 'What attempts cost, in US dollars.', stages, 'cost'),
    family('millrace_tokens', 'Tokens of models, by direction.', stages, 'tokens'),
    family(runSeconds, 'How long attempts ran.', stages, 'run_seconds', 'histogram'),
    family(waitSeconds, 'How long first tries were queued.', stages, 'wait_seconds', 'histogram'),
    family(
      'millrace_run_seconds',
      'How long runs took from their start to their end.',
      runs,
      'run_seconds',
      'histogram',
    ),
  ];
}

const runSeconds = 'millrace_attempt_run_seconds';
const waitSeconds = 'millrace_attempt_wait_seconds';

function writeCounter(counter: Counter, ends: string[], bounds: string): Written {
  const { outcomes, cost_usd, input_tokens, output_tokens } = counter;
  const isRun = counter.stage === null;
  const labels = stageLabels(counter.pipeline, counter.stage);
  const ended = outcomesShown.map(
    (outcome) => `_total{${labels},outcome="${outcome}"} ${numberOf(outcomes[outcome] ?? 0)}`,
  );
  return {
    bounds,
    ended: ended.join(isRun ? '\nmillrace_runs' : '\nmillrace_attempts'),
    cost: `_total{${labels}} ${numberOf(cost_usd)}`,
    tokens:
      `_total{${labels},direction="input"} ${numberOf(input_tokens)}\n` +
      `millrace_tokens_total{${labels},direction="output"} ${numberOf(output_tokens)}`,
    run_seconds: writeTimes(isRun ? 'millrace_run_seconds' : runSeconds, labels, counter.run_seconds, ends),
    // A pipeline as a whole has no wait.
    wait_seconds: isRun ? '' : writeTimes(waitSeconds, labels, counter.wait_seconds, ends),
  };
}

function writeTimes(name: string, labels: string, { sum, buckets }: Counter['run_seconds'], ends: string[]): string {
  const bucket = `_bucket{${labels}`;
  const lines: string[] = [];
  let count = 0;
  for (let index = 0; index < buckets.length; index++) {
    count += buckets[index] ?? 0;
    lines.push(`${bucket}${ends[index]}${numberOf(count)}`);
  }
  lines.push(`_count{${labels}} ${numberOf(count)}`, `_sum{${labels}} ${numberOf(sum)}`);
  // V8 copies a joined text at once. It would copy a text that was put together by + piece by piece, at each scrape.
  return lines.join(`\n${name}`);
}

function gaugeFamilies({ stages, alerts, messages, sweep_age_seconds: age, release, level }: Metrics): Family[] {
  const gauge = (name: string, help: string, samples: [labels: string, value: number][]): Family => ({
    name,
    type: 'gauge',
    help,
    samples: samples.map(([labels, value]) => `${labels && `{${labels}}`} ${numberOf(value)}`),
  });
  const labelled = stages.map((each) => [stageLabels(each.pipeline, each.stage), each] as const);
  const ofStages = (name: string, help: string, read: (stage: (typeof stages)[0]) => number) =>
    gauge(
      name,
      help,
      labelled.map(([labels, each]) => [labels, read(each)]),
    );
  return [
    ofStages('millrace_ready', 'Attempts that are ready, counted to 10,001.', ({ ready }) => ready),
    ofStages('millrace_in_backoff', 'Attempts that wait for their retry.', ({ in_backoff }) => in_backoff),
    ofStages('millrace_started', 'Attempts in work.', ({ started }) => started),
    ofStages(
      'millrace_oldest_ready_seconds',
      'How long the oldest has been ready.',
      (each) => each.oldest_ready_seconds ?? 0,
    ),
    ofStages('millrace_live_workers', 'Workers at work.', ({ live_workers }) => live_workers),
    ofStages('millrace_enabled', '0 while the stage or its pipeline is paused.', ({ enabled }) => Number(enabled)),
    gauge(
      'millrace_alerts_open',
      'Alerts of rules that are not over.',
      alerts.map(({ rule, pipeline, open }) => [written({ rule, pipeline }), open]),
    ),
    gauge(
      'millrace_alert_messages',
      'Messages about alerts that are not delivered.',
      messages.flatMap(({ channel, waiting, dead }): [string, number][] => [
        [written({ channel, state: 'waiting' }), waiting],
        [written({ channel, state: 'dead' }), dead],
      ]),
    ),
    gauge('millrace_sweep_age_seconds', 'How long ago the last sweep was.', age === null ? [] : [['', age]]),
    gauge('millrace_release', 'Which Millrace this is.', [[written({ release, level: String(level) }), 1]]),
  ];
}

function stageLabels(pipeline: string, stage: string | null): string {
  return stage === null
    ? `pipeline="${escapeLabel(pipeline)}"`
    : `pipeline="${escapeLabel(pipeline)}",stage="${escapeLabel(stage)}"`;
}

/** Labels that have a value, without the braces around them. */
function written(labels: Labels): string {
  return Object.entries(labels)
    .flatMap(([name, value]) => (value === null || value === undefined ? [] : [`${name}="${escapeLabel(value)}"`]))
    .join(',');
}

function escapeText(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function escapeLabel(text: string): string {
  return /[\\\n"]/.test(text) ? escapeText(text).replaceAll('"', '\\"') : text;
}

/** Returns a number as both formats read it: one of OpenMetrics' buckets has a dot. */
function numberOf(value: number): string {
  return Number.isFinite(value) ? String(value) : value > 0 ? '+Inf' : 'NaN';
}
