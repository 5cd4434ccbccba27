// Costs: by pipeline, stage and day from the figures, which are exact; by model and tenant, with the dearest runs, of the newest.

import type { Costs as Answer, Figures, Overview, Series } from '../../operators/answers.ts';
import { count, dollars, many } from '../../operators/numbers.ts';
import { type Range, stretchesOf } from '../../operators/ranges.ts';
import { databaseNow, Moment } from '../base/format.tsx';
import { Fresh } from '../base/fresh.tsx';
import { usePoll } from '../base/poll.ts';
import { type Route, to } from '../base/route.ts';
import { Table } from '../base/table.tsx';
import { Words } from '../base/words.tsx';
import { read } from './api.ts';
import { Chart } from './chart.tsx';
import { Filter } from './filter.tsx';
import { PipelineLink } from './links.tsx';
import { chosenRange, RangePicker } from './range.tsx';

/** The figures of so many pipelines are asked for. */
const mostAsked = 40;

interface Spent {
  points: Figures[];
  before: Figures[];
  stages: { pipeline: string; stage: string; usd: number }[];
  leftOut: number;
}

/** Adds the cost of several pipelines up, step by step. */
const summed = (all: Figures[][]) =>
  (all[0] ?? []).map((point, place) => ({
    ...point,
    cost_usd: all.reduce((sum, points) => sum + (points[place]?.cost_usd ?? 0), 0),
  }));

/** The cost of pipelines in a range and in the time before it, step by step and by stage. */
async function askSpent(range: Range, only: string): Promise<Spent> {
  const names = only ? [only] : (await read<Overview>('overview')).pipelines.map(({ pipeline }) => pipeline);
  const stretches = stretchesOf(range, databaseNow());
  const series = (which: 'now' | 'before') =>
    Promise.all(names.slice(0, mostAsked).map((pipeline) => read<Series>('series', { pipeline, ...stretches[which] })));
  const [now, before] = await Promise.all([series('now'), series('before')]);
  const stages = now.flatMap((found, place) =>
    Object.entries(found.stages ?? {}).map(([stage, { cost_usd }]) => ({
      pipeline: names[place] ?? '',
      stage,
      usd: cost_usd,
    })),
  );
  return {
    points: summed(now.map(({ points }) => points)),
    before: summed(before.map(({ points }) => points)),
    stages: stages.filter(({ usd }) => usd > 0).sort((a, b) => b.usd - a.usd),
    leftOut: Math.max(0, names.length - mostAsked),
  };
}

export function Costs(route: Route) {
  const chosen = chosenRange();
  const range = chosen.seconds > 86_400 ? { ...chosen, stepSeconds: 86_400, by: 'day by day' } : chosen;
  const pipeline = route.query.get('pipeline') ?? '';
  const spent = usePoll(`spent ${range.name} ${pipeline}`, () => askSpent(range, pipeline), 60_000);
  return (
    <>
      <Filter route={route} fields={[{ name: 'pipeline', label: 'Pipeline' }]} />
      <RangePicker />
      <Fresh of={spent.value}>{(found) => <Sums of={found} range={range} />}</Fresh>
      <Newest key={`${range.name} ${pipeline}`} range={range} pipeline={pipeline} />
    </>
  );
}

const share = (usd: number, all: number) => (
  <span class="used">
    <meter value={usd / all} aria-hidden="true" /> {Math.round((usd / all) * 100)} %
  </span>
);

function Sums({ of: { points, before, stages, leftOut }, range }: { of: Spent; range: Range }) {
  const sum = (of: Figures[]) => of.reduce((all, { cost_usd }) => all + cost_usd, 0);
  const all = sum(points);
  return (
    <>
      <p>
        <b>{dollars(all)}</b> in the last {range.says}; {dollars(sum(before))} in the time before.
        {leftOut > 0 && ` Without ${many(leftOut, 'more pipeline')}: choose one.`}
      </p>
      <Chart
        title={`Spent, ${range.by}`}
        points={points}
        before={before}
        range={range}
        shown={dollars}
        lines={[{ name: 'US dollars', colour: 'link', of: ({ cost_usd }) => cost_usd }]}
      />
      <h3>By stage</h3>
      <Table
        label="By stage"
        rows={stages}
        keyOf={({ pipeline, stage }) => `${pipeline} ${stage}`}
        none="No attempt of this time has named a cost."
        columns={[
          { name: 'Pipeline', by: (s) => s.pipeline, cell: (s) => <PipelineLink of={s.pipeline} /> },
          { name: 'Stage', by: (s) => s.stage, cell: (s) => <PipelineLink of={s.pipeline} stage={s.stage} /> },
          { name: 'Spent', isNumber: true, by: (s) => s.usd, cell: (s) => dollars(s.usd) },
          { name: 'Share', isNumber: true, cell: (s) => share(s.usd, all) },
        ]}
      />
    </>
  );
}

/** Adds shares up under one of their names, the most first. */
function sharesBy(shares: Answer['shares'], name: 'model' | 'tenant') {
  const found = new Map<string, number>();
  for (const one of shares) found.set(one[name] ?? '', (found.get(one[name] ?? '') ?? 0) + one.usd);
  return [...found].sort(([, a], [, b]) => b - a);
}

/** The cost of the newest runs of the range, which no figure has. */
function Newest({ range, pipeline }: { range: Range; pipeline: string }) {
  const { from, to: until } = stretchesOf(range, databaseNow()).now;
  const filter = { ...(pipeline && { pipeline }), since: from, before: until };
  const costs = usePoll(`costs ${range.name} ${pipeline}`, () => read<Answer>('costs', filter), 60_000);
  return (
    <Fresh of={costs.value}>
      {({ looked, whole, shares, dearest }) => {
        const all = shares.reduce((sum, { usd }) => sum + usd, 0);
        const by = (name: 'model' | 'tenant', label: string, none: string) => (
          <div>
            <h3>{label}</h3>
            <Table
              label={label}
              rows={sharesBy(shares, name)}
              keyOf={([key]) => key}
              none="None of them has named a cost."
              columns={[
                {
                  name: name === 'model' ? 'Model' : 'Tenant',
                  by: ([key]) => key,
                  cell: ([key]) => (key ? <Words text={key} most={80} /> : <span class="hint">{none}</span>),
                },
                { name: 'Spent', isNumber: true, by: ([, usd]) => usd, cell: ([, usd]) => dollars(usd) },
                { name: 'Share', isNumber: true, cell: ([, usd]) => share(usd, all) },
              ]}
            />
          </div>
        );
        return (
          <>
            <p class="hint">
              {whole
                ? `What follows is of the ${many(looked, 'run')} of this time that are kept.`
                : `What follows is not exact: it is of the ${count(looked)} newest runs of this time, and there are more.`}
            </p>
            <div class="charts">
              {by('model', 'By model', 'no model named')}
              {by('tenant', 'By tenant', 'no tenant')}
            </div>
            <h3>The dearest runs</h3>
            <Table
              label="The dearest runs"
              rows={dearest}
              keyOf={({ run }) => run}
              none="None of them has named a cost."
              columns={[
                { name: 'Run', isNumber: true, by: (r) => r.run, cell: (r) => <a href={to('run', r.run)}>{r.run}</a> },
                { name: 'Row', cell: (r) => <Words text={r.label ?? r.entity} most={80} /> },
                { name: 'Pipeline', by: (r) => r.pipeline, cell: (r) => <PipelineLink of={r.pipeline} /> },
                { name: 'Began', by: (r) => r.began_at, cell: (r) => <Moment at={r.began_at} /> },
                { name: 'Spent', isNumber: true, by: (r) => r.usd, cell: (r) => dollars(r.usd) },
              ]}
            />
          </>
        );
      }}
    </Fresh>
  );
}
