import type { Metrics } from './add-up-metrics.ts';

type Labels = Record<string, string | null | undefined>;

/** The two forms in which monitoring systems read metrics; they differ in what a counter's family is called. */
export type Format = 'openmetrics' | 'text';

interface Family {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  help: string;
  /** The text of a sample behind the name of its family: `_total{stage="a"} 1`. A scrape of a thousand stages has fifty thousand. */
  samples: string[];
}

/** Writes what the engine tells as OpenMetrics, or in Prometheus's text format. */
export function writeMetrics(metrics: Metrics, format: Format): string {
  let text = '';
  for (const { name, type, help, samples } of [...counterFamilies(metrics), ...gaugeFamilies(metrics)]) {
    if (samples.length === 0) continue;
    const family = format === 'text' && type === 'counter' ? `${name}_total` : name;
    text += `# TYPE ${family} ${type}\n# HELP ${family} ${escapeText(help)}\n${name}${samples.join(`\n${name}`)}\n`;
  }
  return format === 'openmetrics' ? `${text}# EOF\n` : text;
}

/** In the order in which they are written; the engine counts more, such as attempts that were removed. */
const outcomesShown = ['completed', 'ended', 'failed', 'retried', 'skipped', 'cancelled'];

/** The counters of a stage or pipeline with its labels, which stand in some fifty lines and are written once. */
type Labelled = Metrics['counters'][0] & { labels: string };

function counterFamilies({ counters, bounds }: Metrics): Family[] {
  const labelled = counters.map((each): Labelled => {
    const { pipeline, stage } = each;
    return { ...each, labels: written({ pipeline, stage }) };
  });
  const stages = labelled.filter(({ stage }) => stage !== null);
  const runs = labelled.filter(({ stage }) => stage === null);
  const outcomes = (of: Labelled[]) =>
    of.flatMap(({ labels, outcomes: ended }) =>
      outcomesShown.map((outcome) => `_total{${labels},outcome="${outcome}"} ${numberOf(ended[outcome] ?? 0)}`),
    );
  const counter = (name: string, help: string, samples: string[]): Family => ({ name, type: 'counter', help, samples });
  return [
    counter('millrace_attempts', 'Attempts that ended, by outcome.', outcomes(stages)),
    counter('millrace_runs', 'Runs that ended, by outcome.', outcomes(runs)),
    counter(
      'millrace_cost_usd',
      'What attempts cost, in US dollars.',
      stages.map(({ labels, cost_usd }) => `_total{${labels}} ${numberOf(cost_usd)}`),
    ),
    counter(
      'millrace_tokens',
      'Tokens of models, by direction.',
      stages.flatMap(({ labels, input_tokens, output_tokens }) => [
        `_total{${labels},direction="input"} ${numberOf(input_tokens)}`,
        `_total{${labels},direction="output"} ${numberOf(output_tokens)}`,
      ]),
    ),
    histogram('millrace_attempt_run_seconds', 'How long attempts ran.', stages, 'run_seconds', bounds),
    histogram('millrace_attempt_wait_seconds', 'How long first tries were queued.', stages, 'wait_seconds', bounds),
    histogram('millrace_run_seconds', 'How long runs took from their start to their end.', runs, 'run_seconds', bounds),
  ];
}

function histogram(
  name: string,
  help: string,
  counters: Labelled[],
  field: 'run_seconds' | 'wait_seconds',
  bounds: number[],
): Family {
  const samples: string[] = [];
  const ends = [...bounds.map(numberOf), '+Inf'].map((bound) => `,le="${bound}"} `);
  for (const { labels, [field]: times } of counters) {
    const bucket = `_bucket{${labels}`;
    let count = 0;
    for (let index = 0; index < times.buckets.length; index++) {
      count += times.buckets[index] ?? 0;
      samples.push(`${bucket}${ends[index]}${numberOf(count)}`);
    }
    samples.push(`_count{${labels}} ${numberOf(count)}`, `_sum{${labels}} ${numberOf(times.sum)}`);
  }
  return { name, type: 'histogram', help, samples };
}

function gaugeFamilies({ stages, alerts, messages, sweep_age_seconds: age, release, level }: Metrics): Family[] {
  const gauge = (name: string, help: string, samples: [labels: string, value: number][]): Family => ({
    name,
    type: 'gauge',
    help,
    samples: samples.map(([labels, value]) => `${labels && `{${labels}}`} ${numberOf(value)}`),
  });
  const labelled = stages.map((each) => [written({ pipeline: each.pipeline, stage: each.stage }), each] as const);
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
  return escapeText(text).replaceAll('"', '\\"');
}

/** A number as both formats read it: one of OpenMetrics' buckets has a dot. */
function numberOf(value: number): string {
  return Number.isFinite(value) ? String(value) : value > 0 ? '+Inf' : 'NaN';
}
