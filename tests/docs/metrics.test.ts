// docs/metrics: its dashboard, its rules and its page name metrics that there are.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { metricsAnswer } from '../../supabase/functions/_millrace/engine/metrics-contract.ts';
import type { Metrics } from '../../supabase/functions/_millrace/metrics/add-up-metrics.ts';
import { writeMetrics } from '../../supabase/functions/_millrace/metrics/write-metrics.ts';
import { readMetrics } from '../support/engine/open-metrics.ts';
import { docsFolder } from './page.ts';

const folder = path.join(docsFolder, 'metrics');
const read = (file: string) => readFile(path.join(folder, file), 'utf8');
const times = { sum: 1, buckets: [1, 2] };
const answer: Metrics = {
  release: '0.2.0',
  level: 2,
  bounds: [0.5],
  counters: [null, 'only'].map((stage) => ({
    pipeline: 'a "b" \\ c\nd',
    stage,
    outcomes: { completed: 1 },
    run_seconds: times,
    wait_seconds: times,
    cost_usd: 0.1,
    input_tokens: 1,
    output_tokens: 2,
  })),
  stages: [
    {
      pipeline: 'flow',
      stage: 'only',
      enabled: true,
      ready: 1,
      in_backoff: 0,
      started: 0,
      oldest_ready_seconds: null,
      live_workers: 0,
    },
  ],
  sweep_age_seconds: 3,
  alerts: [{ rule: 'engine', pipeline: null, open: 1 }],
  messages: [{ channel: 'ops', waiting: 1, dead: 0 }],
};
const families = readMetrics(writeMetrics(answer, 'openmetrics'), 'openmetrics');
const known = new Set(families.flatMap(({ samples }) => samples.map(({ name }) => name)));
const namesIn = (text: string) => [...new Set(text.match(/\bmillrace_[a-z0-9_]+/g))];

test('labels are written as the format has them, whatever they hold', () => {
  expect(families[0]?.samples[0]?.labels.pipeline).toBe('a "b" \\ c\nd');
  expect(readMetrics(writeMetrics(answer, 'text'), 'text')).toHaveLength(families.length);
});

test('an answer of another shape is refused by the place of what does not fit', () => {
  const counter: unknown[] = ['flow', 'only', 'completed', 1, 5, [1, 0], 5, [1, 0], 0.1, 1, 2];
  const refused = (change: object) =>
    metricsAnswer
      .safeParse({ ...answer, counters: [counter], ...change })
      .error?.issues.map((issue) => issue.path.join('.'));
  expect(refused({})).toBeUndefined();
  const broken = [counter.with(5, ['1']), counter.with(8, null), counter.slice(0, -1), {}];
  expect(refused({ counters: [counter, ...broken] })).toEqual(['counters.1', 'counters.2', 'counters.3', 'counters.4']);
  const [stage] = answer.stages;
  expect(refused({ stages: [stage, { ...stage, ready: '1' }, null] })).toEqual(['stages.1', 'stages.2']);
});

test('the reader finds what the format does not allow', () => {
  const text = writeMetrics(answer, 'openmetrics');
  const broken = (change: (text: string) => string) => () => readMetrics(change(text), 'openmetrics');
  expect(broken((given) => given.replace('# EOF\n', ''))).toThrow('# EOF');
  expect(broken((given) => given.replace('\\"b', '"b'))).toThrow('no sample');
  expect(broken((given) => given.replace('attempts_total{', 'attempts{'))).toThrow('does not belong');
  expect(broken((given) => given.replace(/(millrace_ready\{.*\n)/, '$1$1'))).toThrow('told twice');
  expect(broken((given) => given.replace(/(_bucket\{.*le="\+Inf"\}) 3/, '$1 2'))).toThrow('counts');
});

test.each(['dashboard.json', 'millrace.rules.yml'])('%s asks for metrics that there are', async (file) => {
  const asked = namesIn(await read(file));
  expect(asked.length).toBeGreaterThan(5);
  expect(asked.filter((name) => !known.has(name))).toEqual([]);
});

test('the dashboard is one that Grafana imports, with a panel for each question', async () => {
  const dashboard = JSON.parse(await read('dashboard.json')) as {
    panels: { id: number; targets: { expr: string }[] }[];
  };
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  for (const { targets } of dashboard.panels) expect(targets.length).toBeGreaterThan(0);
  // Each figure of the engine is shown somewhere, but which release it is.
  const shown = new Set(namesIn(JSON.stringify(dashboard)).map((name) => name.replace(/_(bucket|total)$/, '')));
  const hidden = families.map(({ name }) => name).filter((name) => !shown.has(name));
  expect(hidden.sort()).toEqual(['millrace_enabled', 'millrace_release']);
});

test('the page lists every metric', async () => {
  const listed = namesIn(await read('README.md')).map((name) => name.replace(/_total$/, ''));
  expect(families.map(({ name }) => name).filter((name) => !listed.includes(name))).toEqual([]);
});

const annotated = async () =>
  [...(await read('millrace.rules.yml')).matchAll(/^ +summary: (.*)$/gm)].map(([, text]) => text);

test('no rule tells a bare value, which Prometheus writes with all its digits', async () => {
  const values = (await annotated()).flatMap((text = '') => text.match(/\{\{[^}]*\$value[^}]*\}\}/g) ?? []);
  expect(values.length).toBeGreaterThan(4);
  expect(values.filter((value) => !/printf "%\.\d?f"|\| humanize/.test(value))).toEqual([]);
});

test('the page tells an uptime monitor the token, which health is refused without', async () => {
  const page = await read('README.md');
  const health = page.slice(page.indexOf('## Health'), page.indexOf('## The metrics'));
  expect(health).toContain(
    'Authorization: Bearer $METRICS_TOKEN" https://REF.supabase.co/functions/v1/millrace/health',
  );
  expect(health).toContain('401');
});

/** Seven runs that fail a minute, which an increase over the hour makes a broken number of. */
const failing = {
  interval: '1m',
  input_series: [{ series: 'millrace_runs_total{pipeline="flow",outcome="failed"}', values: '0+7x59' }],
  alert_rule_test: [
    {
      eval_time: '59m',
      alertname: 'MillraceDead',
      exp_alerts: [
        {
          exp_labels: { pipeline: 'flow' },
          exp_annotations: {
            summary: '413 runs of flow failed in an hour. See docs/playbooks/permanent-failures.md.',
          },
        },
      ],
    },
  ],
};

test('promtool accepts the rules and the metrics, where it is installed', async ({ skip }) => {
  const run = promisify(execFile);
  const isThere = await run('promtool', ['--version']).then(
    () => true,
    () => false,
  );
  if (!isThere) skip();
  const rules = path.join(folder, 'millrace.rules.yml');
  await run('promtool', ['check', 'rules', rules]);
  const place = await mkdtemp(path.join(tmpdir(), 'rules-'));
  onTestFinished(() => rm(place, { recursive: true }));
  const tests = path.join(place, 'tests.yml');
  await writeFile(tests, JSON.stringify({ rule_files: [rules], evaluation_interval: '1m', tests: [failing] }));
  await run('promtool', ['test', 'rules', tests]);
  const metrics = run('promtool', ['check', 'metrics']);
  metrics.child.stdin?.end(writeMetrics(answer, 'text'));
  await metrics;
});
