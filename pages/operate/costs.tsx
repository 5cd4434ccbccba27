// Costs by pipeline, stage, model, tenant and step of time, which are exact, and the dearest of the newest runs.

import type { Costs as Answer, Figures } from '../../operators/answers.ts';
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
import { type Mark, marksWithin, useMarks } from './marks.ts';
import { Released } from './pipeline.tsx';
import { chosenRange, RangePicker } from './range.tsx';

interface Spent extends Answer {
  /** Every step of the range, and as many before it. */
  now: Figures[];
  before: Figures[];
}

async function askSpent(range: Range, pipeline: string): Promise<Spent> {
  const { from } = stretchesOf(range, databaseNow()).now;
  const answer = await read<Answer>('costs', { ...(pipeline && { pipeline }), since: from });
  const [since, step] = [Date.parse(answer.since), range.stepSeconds * 1000];
  const steps = Math.ceil((databaseNow() - since) / step);
  const spent = new Map(answer.points.map(({ at, usd }) => [Date.parse(at), usd]));
  const stretch = (first: number) =>
    Array.from({ length: steps }, (_, place) => {
      const at = first + place * step;
      return { at: new Date(at).toISOString(), cost_usd: spent.get(at) ?? 0 } as Figures;
    });
  return { ...answer, now: stretch(since), before: stretch(since - steps * step) };
}

export function Costs(route: Route) {
  const chosen = chosenRange();
  // Costs are kept by the hour and by the day. The last hour is the present one and the one before.
  const by = chosen.seconds > 86_400 ? 'day' : 'hour';
  const range = {
    ...chosen,
    seconds: Math.max(chosen.seconds, 7200),
    stepSeconds: by === 'day' ? 86_400 : 3600,
    by: `${by} by ${by}`,
  };
  const pipeline = route.query.get('pipeline') ?? '';
  const spent = usePoll(`costs ${range.name} ${pipeline}`, () => askSpent(range, pipeline), 60_000);
  const marks = useMarks()(pipeline);
  return (
    <>
      <Filter route={route} fields={[{ name: 'pipeline', label: 'Pipeline' }]} />
      <RangePicker />
      <Fresh of={spent.value}>{(found) => <Found of={found} range={range} by={by} marks={marks} />}</Fresh>
    </>
  );
}

const sum = (of: { usd: number }[]) => of.reduce((all, { usd }) => all + usd, 0);

function Found({ of, range, by, marks: all }: { of: Spent; range: Range; by: string; marks: Mark[] }) {
  const { since, shares, looked, whole, dearest, now, before } = of;
  const usd = sum(shares.filter(({ kind }) => kind === 'pipeline'));
  const marks = marksWithin(all, now, range.stepSeconds);
  return (
    <>
      <p>
        <b>{dollars(usd)}</b> since <Moment at={since} />; {dollars(sum(of.points) - usd)} in the{' '}
        {many(before.length, by)} before.
      </p>
      <Chart
        title={`Spent, ${range.by}`}
        points={now}
        before={before}
        range={range}
        marks={marks}
        shown={dollars}
        lines={[{ name: 'US dollars', colour: 'link', of: ({ cost_usd }) => cost_usd }]}
      />
      <Released marks={marks} />
      <div class="charts">
        <Shares of={shares} all={usd} kind="pipeline" column="Pipeline" />
        <Shares of={shares} all={usd} kind="model" column="Model" />
        <Shares of={shares} all={usd} kind="tenant" column="Tenant" />
      </div>
      <Shares of={shares} all={usd} kind="stage" column="Stage" />
      <h3>The dearest runs</h3>
      <p class="hint">
        {whole
          ? `Of the ${many(looked, 'run')} of this time that are kept.`
          : `Of the ${count(looked)} newest runs of this time; there are more.`}
      </p>
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
}

type Share = Answer['shares'][number];

interface SharesProps {
  of: Share[];
  /** The sum of all costs. */
  all: number;
  kind: Share['kind'];
  column: string;
}

/** The shares of one kind, with the sum of those that the answer leaves out. */
function Shares({ of, all, kind, column }: SharesProps) {
  const listed = of.filter((share) => share.kind === kind);
  const rows = listed.length < 500 ? listed : [...listed, { kind, pipeline: null, name: null, usd: all - sum(listed) }];
  const named = ({ pipeline, name }: Share) =>
    name ? (
      pipeline ? (
        <PipelineLink of={pipeline} {...(kind === 'stage' && { stage: name })} />
      ) : (
        <Words text={name} most={80} />
      )
    ) : (
      <span class="hint">{name === null ? 'all others' : `no ${kind} named`}</span>
    );
  return (
    <div>
      <h3>By {kind}</h3>
      <Table
        label={`By ${kind}`}
        rows={rows}
        keyOf={({ pipeline, name }) => `${pipeline} ${name}`}
        none="No attempt of this time has named a cost."
        columns={[
          ...(kind === 'stage'
            ? [
                {
                  name: 'Pipeline',
                  by: (s: Share) => s.pipeline,
                  cell: (s: Share) => <PipelineLink of={s.pipeline ?? ''} />,
                },
              ]
            : []),
          { name: column, by: (s) => s.name, cell: named },
          { name: 'Spent', isNumber: true, by: (s) => s.usd, cell: (s) => dollars(s.usd) },
          {
            name: 'Share',
            isNumber: true,
            cell: ({ usd }) => (
              <span class="used">
                <meter value={usd / all} aria-hidden="true" /> {Math.round((usd / all) * 100)} %
              </span>
            ),
          },
        ]}
      />
    </div>
  );
}
