import type { Metrics } from './add-up-metrics.ts';

type Labels = Record<string, string | null | undefined>;

/** The two forms in which monitoring systems read metrics; they differ in what a counter's family is called. */
export type Format = 'openmetrics' | 'text';

interface Family {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  help: string;
  samples: [suffix: string, labels: Labels, value: number][];
}

/** Writes what the engine tells as OpenMetrics, or in Prometheus's text format. */
export function writeMetrics(metrics: Metrics, format: Format): string {
  const families = [...counterFamilies(metrics), ...gaugeFamilies(metrics)].filter(({ samples }) => samples.length > 0);
  const lines = families.flatMap(({ name, type, help, samples }) => {
    const family = format === 'text' && type === 'counter' ? `${name}_total` : name;
    return [
      `# TYPE ${family} ${type}`,
      `# HELP ${family} ${escapeText(help)}`,
      ...samples.map(([suffix, labels, value]) => `${name}${suffix}${written(labels)} ${numberOf(value)}`),
    ];
  });
  return `${[...lines, ...(format === 'openmetrics' ? ['# EOF'] : [])].join('\n')}\n`;
}

/** In the order in which they are written; the engine counts more, such as attempts that were removed. */
const outcomesShown = ['completed', 'ended', 'failed', 'retried', 'skipped', 'cancelled'];

function counterFamilies({ counters, bounds }: Metrics): Family[] {
  const stages = counters.filter(({ stage }) => stage !== null);
  const runs = counters.filter(({ stage }) => stage === null);
  const labelsOf = ({ pipeline, stage }: (typeof counters)[0]) => ({ pipeline, stage });
  const outcomes = (of: typeof counters) =>
    of.flatMap((counter) =>
      outcomesShown.map((outcome): Family['samples'][0] => [
        '_total',
        { ...labelsOf(counter), outcome },
        counter.outcomes[outcome] ?? 0,
      ]),
    );
  const counter = (name: string, help: string, samples: Family['samples']): Family => ({
    name,
    type: 'counter',
    help,
    samples,
  });
  return [
    counter('millrace_attempts', 'Attempts that ended, by outcome.', outcomes(stages)),
    counter('millrace_runs', 'Runs that ended, by outcome.', outcomes(runs)),
    counter(
      'millrace_cost_usd',
      'What attempts cost, in US dollars.',
      stages.map((each) => ['_total', labelsOf(each), each.cost_usd]),
    ),
    counter(
      'millrace_tokens',
      'Tokens of models, by direction.',
      stages.flatMap((each): Family['samples'] => [
        ['_total', { ...labelsOf(each), direction: 'input' }, each.input_tokens],
        ['_total', { ...labelsOf(each), direction: 'output' }, each.output_tokens],
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
  counters: Metrics['counters'],
  field: 'run_seconds' | 'wait_seconds',
  bounds: number[],
): Family {
  const samples = counters.flatMap(({ pipeline, stage, [field]: { sum, buckets } }): Family['samples'] => {
    let count = 0;
    const counted = buckets.map((n, place): Family['samples'][0] => {
      count += n;
      const bound = bounds[place];
      return ['_bucket', { pipeline, stage, le: bound === undefined ? '+Inf' : numberOf(bound) }, count];
    });
    return [...counted, ['_count', { pipeline, stage }, count], ['_sum', { pipeline, stage }, sum]];
  });
  return { name, type: 'histogram', help, samples };
}

function gaugeFamilies({ stages, alerts, messages, sweep_age_seconds: age, release, level }: Metrics): Family[] {
  const gauge = (name: string, help: string, samples: [Labels, number][]): Family => ({
    name,
    type: 'gauge',
    help,
    samples: samples.map(([labels, value]) => ['', labels, value]),
  });
  const ofStages = (name: string, help: string, read: (stage: (typeof stages)[0]) => number) =>
    gauge(
      name,
      help,
      stages.map((each) => [{ pipeline: each.pipeline, stage: each.stage }, read(each)]),
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
      alerts.map(({ rule, pipeline, open }) => [{ rule, pipeline }, open]),
    ),
    gauge(
      'millrace_alert_messages',
      'Messages about alerts that are not delivered.',
      messages.flatMap(({ channel, waiting, dead }): [Labels, number][] => [
        [{ channel, state: 'waiting' }, waiting],
        [{ channel, state: 'dead' }, dead],
      ]),
    ),
    gauge('millrace_sweep_age_seconds', 'How long ago the last sweep was.', age === null ? [] : [[{}, age]]),
    gauge('millrace_release', 'Which Millrace this is.', [[{ release, level: String(level) }, 1]]),
  ];
}

function written(labels: Labels): string {
  const given = Object.entries(labels).filter(([, value]) => value !== null && value !== undefined);
  return given.length === 0
    ? ''
    : `{${given.map(([name, value]) => `${name}="${escapeLabel(value ?? '')}"`).join(',')}}`;
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
