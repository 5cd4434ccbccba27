// Settings: operators, channels of alerts, how long things are kept, and the definitions.

import type { Settings as Answer, Channel, DefinedPipeline, Finding, Job, Operator } from '../../operators/answers.ts';
import { nextRun } from '../../operators/next-run.ts';
import { count, many } from '../../operators/numbers.ts';
import { meanings } from '../../operators/settings.ts';
import { Ago, databaseNow, Moment } from '../base/format.tsx';
import { Fresh } from '../base/fresh.tsx';
import { usePoll } from '../base/poll.ts';
import { type Route, to } from '../base/route.ts';
import { Table } from '../base/table.tsx';
import { Words } from '../base/words.tsx';
import { ActionButton } from './actions.tsx';
import { read } from './api.ts';
import { PipelineLink } from './links.tsx';
import { State } from './states.tsx';
import { Versions } from './versions.tsx';

export function Settings({ of, query }: Route) {
  return of ? <Versions pipeline={of} query={query} /> : <All />;
}

function All() {
  const settings = usePoll('settings', () => read<Answer>('settings'), 15_000);
  return (
    <Fresh of={settings.value}>
      {({ operators, channels, settings: set, pipelines, findings, jobs }) => (
        <>
          {findings && <Findings findings={findings} />}
          {jobs && <Jobs jobs={jobs} />}
          <DueRows pipelines={pipelines.filter(({ due_column }) => due_column)} />
          <h3>Operators</h3>
          <Operators operators={operators} />
          <h3>Channels of alerts</h3>
          <Channels channels={channels} />
          <h3>Definitions</h3>
          <Definitions pipelines={pipelines} />
          <h3>Settings of all pipelines</h3>
          <p class="hint">Changed by SQL: update millrace.settings set value = '…' where name = '…'.</p>
          <Table
            label="Settings"
            rows={set}
            keyOf={({ name }) => name}
            columns={[
              { name: 'Setting', cell: ({ name }) => name },
              { name: 'Value', isNumber: true, cell: ({ value }) => value },
              { name: 'Meaning', cell: ({ name }) => <Words text={meanings[name]} most={400} /> },
            ]}
          />
        </>
      )}
    </Fresh>
  );
}

/** Findings of doctor() that keep the engine from working, each with its remedy. */
function Findings({ findings }: { findings: Finding[] }) {
  return (
    <>
      <h3>Findings</h3>
      <Table
        label="Findings"
        rows={findings}
        keyOf={({ what }) => what}
        none="None: all that millrace.doctor() looks at is as it should be."
        columns={[
          { name: 'Finding and remedy', cell: ({ detail }) => <Words text={detail} most={2000} /> },
          { name: 'Check', cell: ({ what }) => <Words text={what} most={200} /> },
        ]}
      />
    </>
  );
}

/** The jobs of pg_cron, the project's own among them: when each began last and begins next, and whether its last run failed. */
function Jobs({ jobs }: { jobs: Job[] }) {
  const next = ({ schedule, active, last }: Job) => {
    const at = active ? nextRun(schedule, last ? Date.parse(last.began_at) : undefined, databaseNow()) : undefined;
    return at === undefined ? '–' : <Moment at={new Date(at).toISOString()} />;
  };
  return (
    <>
      <h3>Schedules</h3>
      <Table
        label="Schedules"
        rows={jobs}
        keyOf={({ job }) => job}
        none="pg_cron has no job: the findings above say what helps."
        columns={[
          { name: 'Job', cell: ({ job }) => job },
          { name: 'Schedule', cell: ({ schedule }) => schedule },
          { name: 'Last run', cell: (job) => <LastRun of={job} /> },
          { name: 'Next run', cell: next },
        ]}
      />
    </>
  );
}

/** The pipelines whose rows become due by a column: when the next one does, and how many within an hour. */
function DueRows({ pipelines }: { pipelines: DefinedPipeline[] }) {
  if (pipelines.length === 0) return null;
  return (
    <>
      <h3>Due rows</h3>
      <Table
        label="Due rows"
        rows={pipelines}
        keyOf={({ pipeline }) => pipeline}
        columns={[
          { name: 'Pipeline', cell: (p) => <PipelineLink of={p.pipeline} /> },
          { name: 'Column', cell: (p) => <Words text={p.due_column} most={80} /> },
          { name: 'Next row', cell: ({ due }) => (due?.next ? <Moment at={due.next} /> : 'none to come') },
          {
            name: 'Within an hour',
            isNumber: true,
            cell: ({ due }) => (due ? `${count(Math.min(due.soon, 1000))}${due.soon > 1000 ? '+' : ''}` : '–'),
          },
        ]}
      />
    </>
  );
}

function LastRun({ of: { active, last } }: { of: Job }) {
  if (!active) return <State is="paused">switched off</State>;
  if (!last) return <span class="hint">none yet</span>;
  const failed = last.status === 'failed';
  return (
    <>
      <State is={failed ? 'failed' : 'completed'}>{last.status}</State> <Ago at={last.began_at} />
      {failed && ': '}
      {failed && <Words text={last.message} most={200} />}
    </>
  );
}

function Operators({ operators }: { operators: Operator[] }) {
  return (
    <>
      <p class="hint">
        Changed by SQL, in millrace.operators. Whoever does not act on all pipelines sees themselves alone here.
      </p>
      <Table
        label="Operators"
        rows={operators}
        keyOf={({ subject }) => subject}
        none="There is none but whoever has a secret key."
        columns={[
          { name: 'Operator', cell: (o) => <Words text={o.subject} most={80} /> },
          { name: 'Role', cell: (o) => o.role },
          { name: 'Pipelines', cell: (o) => <Words text={o.pipelines?.join(', ') ?? 'all'} most={200} /> },
          { name: 'Results', cell: (o) => (o.payloads ? 'visible' : 'hidden') },
          { name: 'Since', cell: (o) => <Moment at={o.added_at} /> },
          { name: 'Note', cell: (o) => <Words text={o.note} most={120} /> },
        ]}
      />
    </>
  );
}

function Channels({ channels }: { channels: Channel[] }) {
  return (
    <Table
      label="Channels of alerts"
      rows={channels}
      keyOf={({ channel }) => channel}
      none="Nobody is told of alerts: set up a channel, as docs/alerting.md says."
      columns={[
        { name: 'Channel', cell: (c) => c.channel },
        { name: 'Kind', cell: (c) => c.kind },
        {
          name: 'Address',
          cell: ({ enabled, has_address }) =>
            !enabled ? (
              <State is="paused">switched off</State>
            ) : has_address ? (
              <State is="done">known</State>
            ) : (
              <State is="alert">not in Vault</State>
            ),
        },
        { name: 'Last message', cell: (c) => <Last of={c} /> },
        {
          name: 'Actions',
          cell: ({ channel, enabled }) => (
            <ActionButton
              action={{
                label: 'Send a test',
                title: `Send a test by ${channel}`,
                what: 'One message goes out at once; what came of it shows here within a minute.',
                request: { verb: 'test_channel', channel },
                refused: enabled ? undefined : 'It is switched off.',
              }}
            />
          ),
        },
      ]}
    />
  );
}

const outcomes: Record<string, string> = { delivered: 'completed', waiting: 'queued', dead: 'failed' };

function Last({ of: { last } }: { of: Channel }) {
  if (!last) return <span class="hint">none yet</span>;
  return (
    <>
      <State is={outcomes[last.state] ?? last.state}>{last.state}</State> <Ago at={last.at} />
      {last.tries > 1 && `, ${last.tries} tries`} <Words text={last.error} most={200} />
    </>
  );
}

function Definitions({ pipelines }: { pipelines: DefinedPipeline[] }) {
  return (
    <Table
      label="Definitions"
      rows={pipelines}
      keyOf={({ pipeline }) => pipeline}
      none="No pipeline is defined."
      columns={[
        { name: 'Pipeline', cell: (p) => <a href={to('pipeline', p.pipeline)}>{p.pipeline}</a> },
        { name: 'Table', cell: (p) => <Words text={p.table} most={80} /> },
        {
          name: 'Projection',
          cell: (p) => ({ columns: 'columns of each stage', status: 'one column', none: 'none' })[p.projection],
        },
        {
          name: 'Version',
          cell: (p) => (
            <>
              <a href={to('settings', p.pipeline)}>{p.version}</a> since <Moment at={p.since} />
            </>
          ),
        },
        { name: 'Due column', cell: (p) => <Words text={p.due_column} most={80} /> },
        { name: 'Retention of runs', isNumber: true, cell: (p) => many(p.retention_days, 'day') },
        {
          name: 'Of results',
          isNumber: true,
          cell: (p) => (p.outputs_days ? many(p.outputs_days, 'day') : 'the same'),
        },
      ]}
    />
  );
}
