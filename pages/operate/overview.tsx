// Which pipelines run, which stage is behind, since when and why: what needs a person first.

import { useContext } from 'preact/hooks';
import type {
  Alert,
  Bulk,
  Figures,
  Overview as OverviewAnswer,
  StageFigures,
  StageHealth,
  Well,
} from '../../operators/answers.ts';
import {
  byNeed,
  engineFirst,
  isBusy,
  isQuiet,
  type Listed,
  sayQuietAlerts,
  sweepOf,
  wellOf,
} from '../../operators/needs.ts';
import { count, countOf, dollars, many, span } from '../../operators/numbers.ts';
import { paceOf, type Range } from '../../operators/ranges.ts';
import { describeAlert, playbookOf } from '../../supabase/functions/_millrace/alerts/say-alert.ts';
import { Ago, clockAheadMs, Moment, StaleAt, useAsOf } from '../base/format.tsx';
import { Fresh, Trouble } from '../base/fresh.tsx';
import { usePoll } from '../base/poll.ts';
import { to } from '../base/route.ts';
import { under } from '../base/under.ts';
import { Words } from '../base/words.tsx';
import { mayNotAct } from './actions.tsx';
import { read, readOverview } from './api.ts';
import { CausesAndPlace, Playbook } from './causes.tsx';
import { BackoffReason, SeenWorker } from './links.tsx';
import { type Mark, marksWithin, useMarks } from './marks.ts';
import { RangePicker, sayEmpty, useFigures } from './range.tsx';
import { Spark } from './spark.tsx';
import { StateBar } from './state-bar.tsx';
import { State } from './states.tsx';
import { Trend } from './trend.tsx';

/** Of a pipeline with more stages those are shown that have something to do. */
const mostStages = 12;
/** So many of the faults, and of the open alerts, are told here. */
const mostTold = 10;

const askAlerts = () => read<{ alerts: Alert[]; playbooks_url?: string }>('alerts', { open: true, limit: 20 });

export function Overview() {
  const overview = usePoll('overview', readOverview);
  const marksOf = useMarks();
  const open = usePoll('alerts', askAlerts).value;
  return (
    <Fresh of={overview.value}>
      {(answer) => (
        <>
          <Standing overview={answer} />
          {open.error !== undefined && <Trouble error={open.error} />}
          {open.answer && <OpenAlerts {...open.answer} stages={answer.stages} />}
          <Bulks bulks={answer.bulks} />
          {answer.pipelines.length === 0 && (
            <p>No pipeline yet that you see. Define one, or ask whoever runs this project to let you see it.</p>
          )}
          {answer.pipelines.length > 0 && <RangePicker />}
          <div class="cards">
            {byNeed(answer).map((listed) =>
              isQuiet(listed) ? (
                <Quiet key={listed.pipeline.pipeline} {...listed} />
              ) : (
                <Card key={listed.pipeline.pipeline} {...listed} marks={marksOf(listed.pipeline.pipeline)} />
              ),
            )}
          </div>
        </>
      )}
    </Fresh>
  );
}

/** Whether all is well, what is not, and when the sweep ran: the alerts among it stand beneath, with the ways to their causes. */
function Standing({ overview }: { overview: OverviewAnswer }) {
  const well = wellOf(overview);
  const { ok, faults, more, dead_last_day } = well;
  const quiet = sayQuietAlerts(well);
  const { at, is } = sweepOf(overview, useAsOf());
  const told = faults.filter(({ alert, kind }) => !alert && !(kind === 'sweep' && is === 'silent'));
  const sum = faults.length + more;
  const untold = Math.max(0, told.length - mostTold) + more;
  const staleAt = useContext(StaleAt);
  return (
    <section class="engine" aria-label="State of the project">
      <p>
        {staleAt !== null ? (
          <>
            <State is="doubtful">Not known whether all is well</State> since the last answer, at{' '}
            <Moment at={new Date(staleAt).toISOString()} />
          </>
        ) : ok && is !== 'silent' ? (
          <State is="completed">All is well</State>
        ) : (
          <State is="alert">{sum > 0 ? `Not well: ${many(sum, 'fault')}` : 'Not well'}</State>
        )}{' '}
        <span class="hint">
          {at ? 'the sweep ran ' : is === 'due' ? 'the first sweep is due within ten seconds' : 'the sweep never ran'}
          {at && <Ago at={at} />}
        </span>{' '}
        {dead_last_day !== '0' && (
          <a class="hint" href={to('dead')}>
            Dead letters of the last day: {dead_last_day}
          </a>
        )}{' '}
        {quiet && (
          <span class="hint">
            {quiet}: <a href={to('alerts')}>alerts</a>
          </span>
        )}
      </p>
      {is === 'silent' && (
        <p class="trouble">
          <b>The engine's sweep does not run.</b> Retries, deadlines and lost wake-ups wait for it. See whether pg_cron
          runs (millrace.doctor() says why not).
        </p>
      )}
      {told.length > 0 && (
        <div class="trouble">
          {told.slice(0, mostTold).map((fault) => (
            <ToldFault key={fault.what} fault={fault} />
          ))}
        </div>
      )}
      {untold > 0 && <p class="hint">and {many(untold, 'more fault')}</p>}
    </section>
  );
}

/** A fault that is no alert. A finding begins with what was found: its name says how things should be. */
function ToldFault({ fault: { what, kind, detail, pipeline, stage } }: { fault: Well['faults'][number] }) {
  if (kind === 'finding')
    return (
      <p>
        <Words text={detail} most={2000} />{' '}
        <span class="hint">
          (<a href={to('settings')}>doctor()</a> looked for: <Words text={what} most={200} />)
        </span>
      </p>
    );
  return (
    <p>
      <b>
        {pipeline ? (
          <a href={to('pipeline', pipeline, { stage: stage ?? undefined })}>
            <Words text={what} most={200} />
          </a>
        ) : (
          <Words text={what} most={200} />
        )}
      </b>
      : <Words text={detail} most={2000} />
    </p>
  );
}

interface OpenAlertsProps {
  alerts: Alert[];
  playbooks_url?: string;
  stages: StageHealth[];
}

function OpenAlerts({ alerts, playbooks_url, stages }: OpenAlertsProps) {
  if (alerts.length === 0) return null;
  const deadOf = (pipeline: string | null) =>
    stages.reduce((sum, stage) => sum + (stage.pipeline === pipeline ? stage.failed : 0), 0);
  return (
    <section class="alerts" aria-label="Open alerts">
      <h3>
        <a href={to('alerts')}>
          <State is="alert">{`Open alerts: ${alerts.length === 20 ? '20 or more' : alerts.length}`}</State>
        </a>
      </h3>
      <ul>
        {engineFirst(alerts)
          .slice(0, mostTold)
          .map((alert) => (
            <li key={alert.id}>
              <Words text={describeAlert(alert)} most={240} />
              <span class="hint">
                {' · open since '}
                <Moment at={alert.raised_at} />
                {' · '}
              </span>
              <CausesAndPlace of={alert} dead={deadOf(alert.pipeline)} />
              <Playbook at={playbookOf(alert, playbooks_url)} />
            </li>
          ))}
      </ul>
      {alerts.length > mostTold && <p class="hint">{mostTold} of them are shown.</p>}
    </section>
  );
}

const nameOf = (bulk: Bulk) => `${bulk.do.verb} in ${bulk.filter.pipeline}`;

/** Bulks under way. Only an operator can open one, since a verb returns its state and a viewer may call none. */
function Bulks({ bulks }: { bulks: Bulk[] }) {
  if (bulks.length === 0) return null;
  return (
    <section aria-label="Bulks under way">
      <h3>Bulks under way</h3>
      <ul>
        {bulks.map((bulk) => (
          <li key={bulk.bulk}>
            {mayNotAct() ? nameOf(bulk) : <a href={to('bulk', bulk.bulk)}>{nameOf(bulk)}</a>}: {count(bulk.done)} of{' '}
            {bulk.preview.runs} done, {many(bulk.faults, 'fault')}; by <Words text={bulk.by ?? 'SQL'} most={40} />
          </li>
        ))}
      </ul>
    </section>
  );
}

/** A pipeline with nothing to do, in one line. */
function Quiet({ pipeline }: Listed) {
  return (
    <section class="card quiet" aria-label={pipeline.pipeline}>
      <h3>
        <a href={to('pipeline', pipeline.pipeline)}>
          <Words text={pipeline.pipeline} most={100} />
        </a>
      </h3>
      <p class="hint">{many(pipeline.stages, 'stage')}, idle</p>
    </section>
  );
}

function Card({ pipeline: listed, stages, marks }: Listed & { marks: Mark[] }) {
  const { pipeline, enabled, paused, open_alerts, stages: all } = listed;
  const busy = stages.filter(isBusy);
  const shown = stages.length > mostStages ? busy.slice(0, mostStages) : stages;
  const { range, now, before } = useFigures(
    { pipeline },
    shown.map(({ stage }) => stage),
  );
  const points = now.answer?.points ?? [];
  const figures = now.answer?.stages ?? {};
  const asOf = now.answeredAt + clockAheadMs.value;
  return (
    <section class="card" aria-label={pipeline}>
      <div class="card-head">
        <h3>
          <a href={to('pipeline', pipeline)}>
            <Words text={pipeline} most={100} />
          </a>{' '}
          {!enabled && <State is="paused" title={paused?.reason ?? ''} />}{' '}
          {open_alerts !== '0' && (
            <a href={to('alerts', '', { pipeline })}>
              <State is="alert">{many(open_alerts, 'alert')}</State>
            </a>
          )}
        </h3>
        {points.length > 0 && (
          <Spark points={points} of={pipeline} range={range} marks={marksWithin(marks, points, range.stepSeconds)} />
        )}
        {now.answer ? (
          <Sums points={points} before={before?.points} range={range} asOf={asOf} />
        ) : (
          <p class="hint hour">
            Runs in the last {range.says}: {now.error === undefined ? '…' : 'not known, the project does not answer'}
          </p>
        )}
      </div>
      <ol class="stages">
        {shown.map((stage) => (
          <Stage
            key={stage.stage}
            stage={stage}
            figures={under(figures, stage.stage)}
            points={points}
            range={range}
            asOf={asOf}
          />
        ))}
      </ol>
      {shown.length < all && (
        <p class="hint">
          {many(all - shown.length, 'more stage')}
          {busy.length <= mostStages && ', which have nothing to do'}:{' '}
          <a href={to('pipeline', pipeline)}>all of them</a>
        </p>
      )}
    </section>
  );
}

interface SumsProps {
  points: Figures[];
  before: Figures[] | undefined;
  range: Range;
  /** When the figures were answered, by the database's clock in epoch milliseconds. */
  asOf: number;
}

/** The runs that ended in the range, their cost, both in the time before, and how old the figures are. */
function Sums({ points, before, range, asOf }: SumsProps) {
  const sum = (of: Figures[], name: 'completed' | 'failed' | 'cost_usd') =>
    of.reduce((all, point) => all + point[name], 0);
  /** Empty where no run ended and nothing was spent. */
  const tell = (of: Figures[]) => {
    const [completed, failed, spent] = [sum(of, 'completed'), sum(of, 'failed'), sum(of, 'cost_usd')];
    if (completed + failed + spent === 0) return '';
    return `${count(completed)} completed, ${count(failed)} failed${spent > 0 ? `, ${dollars(spent)} spent` : ''}`;
  };
  const told = tell(before ?? []);
  return (
    <p class="hint hour" title={`As of ${new Date(asOf).toLocaleTimeString('en-GB')}`}>
      Runs in the last {range.says}: {tell(points) || 'none ended'}
      {told && `; before that ${told}`}
    </p>
  );
}

/** A figure with its unit, which no end of a line parts. */
const whole = (text: string) => text.replaceAll(' ', '\u00a0');

interface StageProps {
  stage: StageHealth;
  figures: StageFigures | undefined;
  points: Figures[];
  range: Range;
  /** When the figures were answered, by the database's clock in epoch milliseconds. */
  asOf: number;
}

/** The counts of a stage, which link to its runs, and its trend. */
function Stage({ stage, figures, points, range, asOf }: StageProps) {
  const { pipeline, stage: name, ready, oldest_age } = stage;
  const here = { pipeline, stage: name };
  const running = to('runs', '', { ...here, status: 'running' });
  const counts = [
    ['ready', 'ready', running, ''],
    ['in work', 'started', running, ''],
    ['waiting', 'waiting', running, ''],
    ['in backoff', 'in_backoff', running, ''],
    ['late', 'late', running, 'warn'],
    ['dead', 'failed', to('runs', '', { ...here, status: 'failed' }), 'bad'],
  ] as const;
  const told = counts.filter(([, of]) => stage[of] > 0 || ['ready', 'started'].includes(of));
  // A trend by the hour says nothing of the newest minutes.
  const isByMinute = figures !== undefined && range.stepSeconds === 60;
  const empty = sayEmpty(stage, isByMinute ? paceOf(figures.trend ?? {}, asOf) : undefined);
  const hints = [
    empty && `empty in ${empty}`,
    oldest_age !== null && ready > 0 && `oldest ${span(oldest_age * 1000)}`,
    figures && figures.run_p50_ms !== null && `p50 ${span(figures.run_p50_ms)}`,
    figures && figures.run_p50_ms !== null && `p95 ${span(figures.run_p95_ms)}`,
    figures && figures.cost_usd > 0 && `${dollars(figures.cost_usd)} spent`,
  ].filter((hint): hint is string => typeof hint === 'string' && hint !== '');
  return (
    <li>
      <a class="stage-name" href={to('pipeline', pipeline, { stage: name })}>
        <Words text={name} most={60} />
      </a>
      <StateBar of={stage} />
      {figures && points.length > 0 && <Trend of={figures.trend ?? {}} stage={name} points={points} range={range} />}
      <span class="marks">
        <Marks stage={stage} />
      </span>
      <span class="counts">
        {told.map(([what, of, address, tone]) => (
          <a key={what} href={address} class={stage[of] === 0 ? 'none' : tone}>
            <b>{countOf(stage, of)}</b> {what}
          </a>
        ))}
      </span>
      <span class="hint" title={empty && 'Empty at the pace of the last five minutes, without new rows'}>
        {hints.map(whole).join(', ')}
      </span>
      <BackoffReason of={stage} />
      <SeenWorker of={stage} />
    </li>
  );
}

/** The reason why a stage's rows do not move: no worker takes them, or an operator's pause, throttle or bypass. */
export function Marks({ stage: { enabled, paused, throttle, bypass, unattended } }: { stage: StageHealth }) {
  const why = (said: { by: string | null; reason: string | null } | null) =>
    said ? [said.by && `by ${said.by}`, said.reason].filter(Boolean).join(': ') : '';
  return (
    <>
      {unattended && (
        <State is="alert" title={`${unattended.why}; ${unattended.remedy}`}>
          nobody takes it up
        </State>
      )}
      {!enabled && <State is="paused" title={why(paused)} />}
      {throttle && <State is="throttled" title={why(throttle)} />}
      {bypass && <State is="bypassed" title={why(bypass)} />}
    </>
  );
}
