// One pipeline, or one stage of it: what is where now, what happened in a range of time, and what may be done.

import { useMemo } from 'preact/hooks';
import type { Pipeline as Answer, Figures, StageHealth, Version } from '../../operators/answers.ts';
import { count, countOf, dollars, span } from '../../operators/numbers.ts';
import type { Range } from '../../operators/ranges.ts';
import { cut, visible } from '../../operators/visible.ts';
import { Moment } from '../base/format.tsx';
import { Fresh } from '../base/fresh.tsx';
import { usePoll } from '../base/poll.ts';
import { ask, type Route, to } from '../base/route.ts';
import { Table } from '../base/table.tsx';
import { under } from '../base/under.ts';
import { Words } from '../base/words.tsx';
import { read } from './api.ts';
import { Chart, type Line } from './chart.tsx';
import { Graph, tellHealth } from './graph.tsx';
import { PipelineLink } from './links.tsx';
import { type Mark, marksOf, marksWithin } from './marks.ts';
import { Marks } from './overview.tsx';
import { RangePicker, sayEmpty, useFigures, usePaces } from './range.tsx';
import { ListedRuns } from './runs.tsx';
import { StageActions } from './stage-actions.tsx';
import { Touched } from './touched.tsx';

export function Pipeline({ of: pipeline, query }: Route) {
  const stage = query.get('stage') ?? '';
  const found = usePoll(`pipeline ${pipeline}`, () => read<Answer>('pipeline', { pipeline }));
  const { range, now, before } = useFigures({ pipeline, ...(stage && { stage }) });
  const defined = usePoll(
    `versions ${pipeline}`,
    () => read<{ versions: Version[] }>('settings', { pipeline }),
    300_000,
  ).value.answer;
  return (
    <Fresh of={found.value}>
      {(answer) => {
        const health = new Map(answer.health.map((one) => [one.stage, one]));
        const chosen = health.get(stage);
        const marks = marksOf(chosen ? [chosen] : answer.health, defined?.versions ?? []);
        return (
          <>
            <p class="hint">
              Version {answer.version} over {answer.table}. <a href={to('runs', '', { pipeline })}>Runs</a>,{' '}
              <a href={to('dead', '', { pipeline })}>dead letters</a>,{' '}
              <a href={to('journal', '', { pipeline })}>journal</a>
            </p>
            <Graph pipeline={pipeline} stages={answer.stages} tell={tellHealth(health, answer.stages)} chosen={stage} />
            <StageActions pipeline={answer} stage={chosen} />
            {chosen && <Touched key={stage} pipeline={pipeline} stage={stage} />}
            <RangePicker />
            <Fresh of={now}>
              {(series) => <Charts points={series.points} before={before?.points} range={range} marks={marks} />}
            </Fresh>
            <h3>Stages</h3>
            <Stages pipeline={pipeline} health={answer.health} figures={now.answer?.stages} range={range} />
            <RunsBeneath pipeline={pipeline} query={query} />
          </>
        );
      }}
    </Fresh>
  );
}

/** The runs of the pipeline or the stage, of the stretch of time that is chosen on a chart. */
function RunsBeneath({ pipeline, query }: { pipeline: string; query: Route['query'] }) {
  const [stage, since, before] = ['stage', 'since', 'before'].map((name) => query.get(name) ?? '');
  const filter = { pipeline, ...(stage && { stage }), ...(since && { since }), ...(before && { before }) };
  return (
    <>
      <h3>{stage ? 'Runs at the stage' : 'Runs'}</h3>
      <p class="hint">
        {since ? (
          <>
            From <Moment at={since} /> to <Moment at={before} />, by their end, or by their beginning while they run.{' '}
            <button type="button" onClick={() => ask({ since: '', before: '' })}>
              Of any time
            </button>
          </>
        ) : (
          'The newest.'
        )}{' '}
        <a href={to('runs', '', filter)}>All of them</a>
      </p>
      <ListedRuns key={JSON.stringify(filter)} query={filter} />
    </>
  );
}

const number = (name: string, colour: string, of: (point: Figures) => number | null, dash?: number[]): Line => ({
  name,
  colour,
  of,
  ...(dash && { dash }),
});

/** The codes of errors that were met most, and how to draw each. */
function linesOfCodes(points: Figures[]): Line[] {
  const all = new Map<string, number>();
  for (const { codes } of points)
    for (const [code, many] of Object.entries(codes)) all.set(code, (all.get(code) ?? 0) + many);
  const most = [...all].sort(([, a], [, b]) => b - a).slice(0, 4);
  const inks = [['bad'], ['warn', [6, 3]], ['link', [2, 2]], ['soft', [8, 2, 2, 2]]] as [string, number[]?][];
  return most.map(([code], n) => {
    const [ink, dash] = inks[n] ?? ['soft'];
    return number(visible(cut(code, 40)), ink, ({ codes }) => under(codes, code) ?? 0, dash);
  });
}

interface ChartsProps {
  points: Figures[];
  before: Figures[] | undefined;
  range: Range;
  marks: Mark[];
}

function Charts({ points, before, range, marks: all }: ChartsProps) {
  const marks = marksWithin(all, points, range.stepSeconds);
  const common = {
    points,
    before,
    range,
    marks,
    onStretch: (since: string, until: string) => ask({ since, before: until }),
  };
  // A step that has just begun has no sample yet, which is no empty queue.
  const sampled = {
    ...common,
    points: useMemo(() => (points.at(-1)?.ready ? points : points.slice(0, -1)), [points]),
  };
  return (
    <>
      <p class="hint">
        The last {range.says}, {range.by}; in grey the time before. Drag over a chart, or choose a step of its table, to
        filter the runs beneath.
      </p>
      <Released marks={marks} />
      <div class="charts">
        <Chart
          {...common}
          title="Outcomes"
          shown={count}
          lines={[
            number('completed', 'good', ({ completed }) => completed),
            number('failed', 'bad', ({ failed }) => failed, [6, 3]),
            number('tried again', 'warn', ({ retried }) => retried, [2, 2]),
          ]}
        />
        <Chart
          {...common}
          title="Duration"
          shown={span}
          lines={[
            number('run p50', 'good', (point) => point.run_p50_ms),
            number('run p95', 'warn', (point) => point.run_p95_ms, [6, 3]),
            number('wait p50', 'soft', (point) => point.wait_p50_ms, [8, 2, 2, 2]),
            number('wait p95', 'link', (point) => point.wait_p95_ms, [2, 2]),
          ]}
        />
        <Chart {...common} title="Errors by code" shown={count} lines={linesOfCodes(points)} />
        <Chart
          {...common}
          title="Spent"
          shown={dollars}
          lines={[number('US dollars', 'link', ({ cost_usd }) => cost_usd)]}
        />
        <Chart
          {...sampled}
          title="Backlog, counted up to 10,000 a stage"
          shown={count}
          lines={[number('ready', 'warn', ({ ready }) => ready)]}
        />
        <Chart
          {...sampled}
          title="Age of the oldest ready row"
          shown={span}
          lines={[number('oldest', 'link', ({ oldest_ms }) => oldest_ms ?? 0)]}
        />
      </div>
    </>
  );
}

/** The releases within the charts, each of which has a dashed line. */
export function Released({ marks }: { marks: Mark[] }) {
  if (marks.length === 0) return null;
  return (
    <p class="hint">
      Releases (the dashed lines):{' '}
      {marks.map(({ at, what }, place) => (
        <span key={at}>
          {place > 0 && '; '}
          <Words text={what} most={200} /> <Moment at={at} />
        </span>
      ))}
    </p>
  );
}

interface StagesProps {
  pipeline: string;
  health: StageHealth[];
  /** Undefined before an answer. */
  figures: Record<string, Figures> | undefined;
  range: Range;
}

function Stages({ pipeline, health, figures, range }: StagesProps) {
  const paces = usePaces(pipeline) ?? {};
  const of = (stage: StageHealth) => under(figures ?? {}, stage.stage);
  const number = (name: string, of: 'ready' | 'started' | 'waiting' | 'late') => ({
    name,
    isNumber: true,
    by: (stage: StageHealth) => stage[of],
    cell: (stage: StageHealth) => countOf(stage, of),
  });
  const codes = (stage: StageHealth) =>
    Object.entries(of(stage)?.codes ?? {})
      .sort(([, a], [, b]) => b - a)
      .slice(0, 3)
      .map(([code, many]) => `${code} (${count(many)})`)
      .join(', ');
  return (
    <Table
      label="Stages"
      rows={health}
      keyOf={({ stage }) => stage}
      columns={[
        {
          name: 'Stage',
          by: (s) => s.stage,
          cell: (s) => (
            <>
              <PipelineLink of={pipeline} stage={s.stage} /> <Marks stage={s} />
            </>
          ),
        },
        number('Ready', 'ready'),
        { name: 'Empty in', isNumber: true, cell: (s) => sayEmpty(s, under(paces, s.stage)) },
        number('In work', 'started'),
        number('Waiting', 'waiting'),
        {
          name: 'In backoff',
          isNumber: true,
          by: (s) => s.in_backoff,
          cell: (s) =>
            s.in_backoff === 0 ? (
              '0'
            ) : (
              <>
                <Words text={s.backoff?.code} most={40} /> {countOf(s, 'in_backoff')}
              </>
            ),
        },
        number('Late', 'late'),
        {
          name: 'Dead',
          isNumber: true,
          by: (s) => s.failed,
          cell: (s) =>
            s.failed === 0 ? (
              '0'
            ) : (
              <a href={to('runs', '', { pipeline, stage: s.stage, status: 'failed' })}>{countOf(s, 'failed')}</a>
            ),
        },
        { name: 'p50', isNumber: true, by: (s) => of(s)?.run_p50_ms, cell: (s) => span(of(s)?.run_p50_ms) },
        { name: 'p95', isNumber: true, by: (s) => of(s)?.run_p95_ms, cell: (s) => span(of(s)?.run_p95_ms) },
        {
          name: 'Spent',
          isNumber: true,
          by: (s) => of(s)?.cost_usd,
          cell: (s) => (figures ? dollars(of(s)?.cost_usd ?? 0) : '–'),
        },
        { name: `Errors of the last ${range.says}`, cell: (s) => <Words text={figures ? codes(s) : '–'} most={160} /> },
      ]}
    />
  );
}
