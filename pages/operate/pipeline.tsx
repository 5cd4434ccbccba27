// One pipeline, or one stage of it: what is where now, what happened in the last hour, and what may be done.

import { Fresh } from '../base/fresh.tsx';
import { count, dollars, span } from '../base/numbers.ts';
import { usePoll } from '../base/poll.ts';
import { go, type Route, to } from '../base/route.ts';
import { Table } from '../base/table.tsx';
import { Words } from '../base/words.tsx';
import type { Pipeline as Answer, Figures, Series, StageHealth } from './answers.ts';
import { Chart } from './chart.tsx';
import { type Deed, DeedButton, throttleFields, throttleOf } from './deeds.tsx';
import { read } from './door.ts';
import { Graph, tellHealth } from './graph.tsx';
import { Marks } from './overview.tsx';

export function Pipeline({ of: pipeline, query }: Route) {
  const stage = query.get('stage') ?? '';
  const found = usePoll(`pipeline ${pipeline}`, () => read<Answer>('pipeline', { pipeline }));
  const asked = { pipeline, ...(stage && { stage }), by_stage: true };
  const hour = usePoll(`series ${JSON.stringify(asked)}`, () => read<Series>('series', asked), 60_000);
  return (
    <Fresh of={found.value}>
      {(answer) => {
        const health = new Map(answer.health.map((one) => [one.stage, one]));
        const chosen = health.get(stage);
        return (
          <>
            <p class="hint">
              Version {answer.version} over {answer.table}. <a href={to('runs', '', { pipeline })}>Its runs</a>,{' '}
              <a href={to('dead', '', { pipeline })}>dead letters</a>,{' '}
              <a href={to('journal', '', { pipeline })}>journal</a>
            </p>
            <Graph pipeline={pipeline} stages={answer.stages} tell={tellHealth(health)} />
            <Deeds pipeline={answer} stage={chosen} />
            <Fresh of={hour.value}>{(series) => <Charts of={{ pipeline, stage }} points={series.points} />}</Fresh>
            <h3>Stages</h3>
            <Stages pipeline={pipeline} health={answer.health} hour={hour.value.answer?.stages ?? {}} />
          </>
        );
      }}
    </Fresh>
  );
}

/** What may be done to the stage that is chosen, or to all of the pipeline. */
function Deeds({
  pipeline: { pipeline, enabled, health },
  stage,
}: {
  pipeline: Answer;
  stage: StageHealth | undefined;
}) {
  const where = { pipeline, ...(stage && { stage: stage.stage }) };
  const isOn = stage ? stage.enabled : enabled;
  const ready = (stage ? [stage] : health).reduce((all, one) => all + one.ready, 0);
  const deeds: Deed[] = [
    {
      label: 'Pause',
      what: `Nothing begins here until somebody lets it go on; what is in work ends. ${count(ready)} are ready now.`,
      request: { verb: 'pause', ...where },
      refused: isOn ? undefined : 'It is paused.',
    },
    {
      label: 'Unpause',
      what: `It goes on at once; ${count(ready)} are ready now.`,
      request: { verb: 'unpause', ...where },
      refused: isOn ? 'It is not paused.' : undefined,
    },
    {
      label: 'Throttle',
      what: 'It starts no more than this until the time is over; then its definition holds again.',
      fields: throttleFields,
      request: (values) => ({ ...throttleOf(values), ...where }),
      refused: stage ? undefined : 'Choose a stage first: click on it in the graph.',
    },
    {
      label: 'Unthrottle',
      what: 'Its definition holds again at once.',
      request: { verb: 'unthrottle', ...where },
      refused: stage?.throttle ? undefined : 'No stage is chosen that is throttled.',
    },
  ];
  return (
    <>
      <h3>
        {stage ? (
          <>
            Stage <Words text={stage.stage} most={60} /> <Marks stage={stage} />{' '}
            <a href={to('pipeline', pipeline)}>all stages</a>
          </>
        ) : (
          'All stages'
        )}
      </h3>
      <div class="actions">
        {deeds.map((deed) => (
          <DeedButton key={deed.label} deed={{ ...deed, title: `${deed.label} ${Object.values(where).join('.')}` }} />
        ))}
      </div>
    </>
  );
}

function Charts({ of, points }: { of: Record<string, string>; points: Figures[] }) {
  const onStretch = (since: string, before: string) => go(to('runs', '', { ...of, since, before }));
  return (
    <>
      <p class="hint">The last hour, minute by minute. Drag over a stretch to see the runs of that time.</p>
      <div class="charts">
        <Chart
          title="By outcome"
          points={points}
          shown={count}
          onStretch={onStretch}
          lines={[
            { name: 'completed', colour: 'good', of: ({ completed }) => completed },
            { name: 'failed', colour: 'bad', dash: [6, 3], of: ({ failed }) => failed },
            { name: 'tried again', colour: 'warn', dash: [2, 2], of: ({ retried }) => retried },
          ]}
        />
        <Chart
          title="How long it took"
          points={points}
          shown={span}
          onStretch={onStretch}
          lines={[
            { name: 'run p50', colour: 'good', of: (point) => point.run_p50_ms },
            { name: 'run p95', colour: 'warn', dash: [6, 3], of: (point) => point.run_p95_ms },
            { name: 'wait p95', colour: 'link', dash: [2, 2], of: (point) => point.wait_p95_ms },
          ]}
        />
      </div>
    </>
  );
}

interface StagesProps {
  pipeline: string;
  health: StageHealth[];
  hour: Record<string, Figures>;
}

function Stages({ pipeline, health, hour }: StagesProps) {
  const running = (stage: string) => to('runs', '', { pipeline, stage, status: 'running' });
  const number = (name: string, of: (stage: StageHealth) => number) => ({
    name,
    isNumber: true,
    cell: (stage: StageHealth) => count(of(stage)),
  });
  const codes = (stage: string) =>
    Object.entries(hour[stage]?.codes ?? {})
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
          cell: (s) => (
            <>
              <a href={running(s.stage)}>
                <Words text={s.stage} most={60} />
              </a>{' '}
              <Marks stage={s} />
            </>
          ),
        },
        number('Ready', (s) => s.ready),
        number('In work', (s) => s.started),
        number('Waiting', (s) => s.waiting),
        number('In backoff', (s) => s.in_backoff),
        number('Late', (s) => s.late),
        {
          name: 'Dead',
          isNumber: true,
          cell: (s) => <a href={to('runs', '', { pipeline, stage: s.stage, status: 'failed' })}>{count(s.failed)}</a>,
        },
        { name: 'p50', isNumber: true, cell: (s) => span(hour[s.stage]?.run_p50_ms) },
        { name: 'p95', isNumber: true, cell: (s) => span(hour[s.stage]?.run_p95_ms) },
        { name: 'Spent', isNumber: true, cell: (s) => dollars(hour[s.stage]?.cost_usd ?? 0) },
        { name: 'Errors of the hour', cell: (s) => <Words text={codes(s.stage)} most={160} /> },
      ]}
    />
  );
}
