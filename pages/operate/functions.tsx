// Functions and workers: what each answered last, which release works, how many workers live, and what ended them.

import type { LastAnswer, Overview, Series, StageHealth } from '../../operators/answers.ts';
import { count, span } from '../../operators/numbers.ts';
import { type Range, stretchesOf } from '../../operators/ranges.ts';
import { Ago, databaseNow, Moment } from '../base/format.tsx';
import { Fresh } from '../base/fresh.tsx';
import { usePoll } from '../base/poll.ts';
import type { Route } from '../base/route.ts';
import { Table } from '../base/table.tsx';
import { under } from '../base/under.ts';
import { Words } from '../base/words.tsx';
import { read } from './api.ts';
import { functionLog } from './dashboard.ts';
import { Filter } from './filter.tsx';
import { PipelineLink } from './links.tsx';
import { chosenRange, RangePicker } from './range.tsx';
import { State } from './states.tsx';

/** Of so many pipelines the errors of the range are asked for. */
const mostAsked = 40;

/** The figures of each pipeline's stages in a range: errors by code, and what completed by the minute or the hour. */
async function askFigures(rows: Row[], range: Range): Promise<Record<string, Series['stages']>> {
  const { now } = stretchesOf({ ...range, stepSeconds: Math.max(range.stepSeconds, 3600) }, databaseNow());
  const asked = pipelinesOf(rows).map(async (pipeline) => {
    const trends = rows.filter((row) => row.pipeline === pipeline).map(({ stage }) => stage);
    const { stages } = await read<Series>('series', { pipeline, ...now, trends });
    return [pipeline, stages] as const;
  });
  return Object.fromEntries(await Promise.all(asked));
}

type Row = StageHealth & { answer?: LastAnswer | undefined };

const pipelinesOf = (rows: Row[]) => [...new Set(rows.map(({ pipeline }) => pipeline))].slice(0, mostAsked);

/** The stages that have a function, each with its last answer: those that fail or that nobody takes up before the others. */
function rowsOf({ stages, answers }: Overview): Row[] {
  const answered = new Map((answers ?? []).map((answer) => [answer.function_name, answer]));
  const fails = ({ answer, unattended }: Row) => Number(!!unattended || !!answer?.remedy);
  return stages
    .filter((stage) => stage.function)
    .map((stage) => ({ ...stage, answer: answered.get(stage.function ?? '') }))
    .sort((a, b) => fails(b) - fails(a));
}

/** A table has so many stages before somebody asks for more. */
const mostStages = 50;

export function Functions(route: Route) {
  const text = route.query.get('text')?.toLowerCase() ?? '';
  const isWanted = (row: Row) => `${row.pipeline} ${row.stage} ${row.function}`.toLowerCase().includes(text);
  const overview = usePoll('functions', () => read<Overview>('overview', { quiet: true }), 15_000);
  return (
    <Fresh of={overview.value}>
      {(answer) => (
        <>
          <Filter route={route} fields={[{ name: 'text', label: 'Pipeline, stage or function' }]} />
          <RangePicker />
          <FunctionsTable of={rowsOf(answer).filter(isWanted)} />
        </>
      )}
    </Fresh>
  );
}

function FunctionsTable({ of: stages }: { of: Row[] }) {
  const range = chosenRange();
  const key = `figures ${range.name} ${pipelinesOf(stages)}`;
  const asked = usePoll(key, () => askFigures(stages, range), 60_000).value.answer ?? {};
  // Undefined before an answer, and for the stages of a pipeline that was not asked for.
  const figuresOf = ({ pipeline, stage }: Row) => under(under(asked, pipeline) ?? {}, stage);
  const ended = (code: string) => (stage: Row) => {
    const figures = figuresOf(stage);
    return figures && (figures.codes[code] ?? 0);
  };
  const number = (name: string, of: (stage: Row) => number | null | undefined, shown = count) => ({
    name,
    isNumber: true,
    by: of,
    cell: (stage: Row) => {
      const value = of(stage);
      return value === null || value === undefined ? '–' : shown(value);
    },
  });
  return (
    <>
      <p class="hint">
        CPU and memory are those of one row, as workers reckon. A function that did not start (503), or that a limit
        ended (546), names no cause: its log has it. Errors are those of the last {range.says}.
      </p>
      <Table
        label="Functions and workers"
        rows={stages}
        keyOf={({ pipeline, stage }) => `${pipeline} ${stage}`}
        none="No stage has such a function."
        most={mostStages}
        columns={[
          { name: 'Pipeline', by: (s) => s.pipeline, cell: (s) => <PipelineLink of={s.pipeline} /> },
          { name: 'Stage', by: (s) => s.stage, cell: (s) => <PipelineLink of={s.pipeline} stage={s.stage} /> },
          { name: 'Function', by: (s) => s.function, cell: (s) => <FunctionName of={s} /> },
          {
            name: 'Last wake-up',
            by: (s) => s.answer?.answered,
            cell: (s) => (
              <>
                <Answered of={s} />
                <Worked trend={figuresOf(s)?.trend ?? {}} liveWorkers={s.live_workers} range={range} />
              </>
            ),
          },
          { name: 'Release', by: (s) => s.releases?.[0]?.at, cell: (s) => <Release of={s} /> },
          {
            ...number('Workers', (s) => s.live_workers),
            cell: (s) => `${s.live_workers} of ${s.max_workers ?? '–'}`,
          },
          number('CPU', (s) => s.row_cpu_ms, span),
          number(
            'Memory',
            (s) => s.costs?.memory_bytes,
            (bytes) => `${count(Math.round(bytes / 104_858) / 10)} MB`,
          ),
          number('Resource limits', ended('resource_limit')),
          number('Lost leases', ended('lost_lease')),
        ]}
      />
    </>
  );
}

function FunctionName({ of: { function: name, worker } }: { of: StageHealth }) {
  const log = functionLog(name ?? '');
  if (worker) return <>worker {worker.url && <Words text={worker.url} most={80} />}</>;
  return (
    <>
      <Words text={name} most={80} /> {log && <a href={log}>log</a>}
    </>
  );
}

/** A function's answer to its newest wake-up; a worker of the project's own asks by itself. */
function Answered({ of: { answer, worker } }: { of: Row }) {
  if (worker && !answer)
    return worker.seen_at ? (
      <>
        asked for work <Ago at={worker.seen_at} />
      </>
    ) : (
      <State is="alert">none has asked for work</State>
    );
  if (!answer) return <span class="hint">none in six hours</span>;
  return (
    <>
      <State is={answer.remedy === null ? 'completed' : 'failed'}>{answer.answered}</State>{' '}
      <Ago at={answer.answered_at} />
      {answer.remedy !== null && (
        <>
          {': '}
          <Words text={`${answer.means}; ${answer.remedy}`} most={400} />
        </>
      )}
    </>
  );
}

interface WorkedProps {
  trend: Record<string, number>;
  liveWorkers: number;
  range: Range;
}

/** Whether workers are at work now, else when work last completed in the range, woken or not. */
function Worked({ trend, liveWorkers, range }: WorkedProps) {
  const last = Object.keys(trend)
    .toSorted((a, b) => Date.parse(a) - Date.parse(b))
    .at(-1);
  if (liveWorkers === 0 && last === undefined) return null;
  return (
    <div class="hint">
      {liveWorkers > 0 ? (
        'at work now'
      ) : range.stepSeconds === 60 ? (
        <>
          completed work <Ago at={last} />
        </>
      ) : (
        <>
          completed work in the hour from <Moment at={last} />
        </>
      )}
    </div>
  );
}

function Release({ of: { releases, worker } }: { of: StageHealth }) {
  const [newest] = releases ?? [];
  if (newest)
    return (
      <>
        <Words text={newest.release} most={40} /> <span class="hint">since</span> <Moment at={newest.at} />
      </>
    );
  return worker?.release ? <Words text={worker.release} most={40} /> : '–';
}
