// Pipelines that show their runs in one status column: how many rows stand at each value, for how long, and which moves are
// legal from there.

import type { Status as Answer, Settings, StatusRow, StatusValue } from '../../operators/answers.ts';
import { count, many } from '../../operators/numbers.ts';
import { Ago, Moment } from '../base/format.tsx';
import { Fresh } from '../base/fresh.tsx';
import { usePoll } from '../base/poll.ts';
import { type Route, to } from '../base/route.ts';
import { Table } from '../base/table.tsx';
import { Words } from '../base/words.tsx';
import { read } from './api.ts';
import { State } from './states.tsx';

export function Status({ of, query }: Route) {
  return of ? <Values pipeline={of} chosen={query.get('value')} /> : <Pipelines />;
}

function Pipelines() {
  const settings = usePoll('settings', () => read<Settings>('settings'), 60_000);
  return (
    <Fresh of={settings.value}>
      {({ pipelines }) => (
        <Table
          label="Pipelines with a status column"
          rows={pipelines.filter(({ projection }) => projection === 'status')}
          keyOf={({ pipeline }) => pipeline}
          none="No pipeline shows its runs in one status column. The others are on the overview."
          columns={[
            { name: 'Pipeline', cell: (p) => <a href={to('status', p.pipeline)}>{p.pipeline}</a> },
            { name: 'Table', cell: (p) => p.table },
          ]}
        />
      )}
    </Fresh>
  );
}

function Values({ pipeline, chosen }: { pipeline: string; chosen: string | null }) {
  const status = usePoll(`status ${pipeline}`, () => read<Answer>('status', { pipeline }));
  return (
    <Fresh of={status.value}>
      {(found) => (
        <>
          <p class="hint">
            {found.table}.{found.column}: <a href={to('pipeline', pipeline)}>pipeline</a>,{' '}
            <a href={to('runs', '', { pipeline })}>runs</a>.{' '}
            {found.whole
              ? `The table has ${many(found.looked, 'row')}.`
              : `The table has more rows than a page should count: these are the ${count(found.looked)} newest and those whose run is live or failed, up to 4,000 of each.`}
          </p>
          <ValuesTable pipeline={pipeline} values={found.values} chosen={chosen} />
          {chosen !== null && (
            <>
              <Moves of={found} value={chosen} />
              <Rows pipeline={pipeline} value={chosen} />
            </>
          )}
          {chosen === null && <p class="hint">Choose a value to see what may be written there, and its rows.</p>}
        </>
      )}
    </Fresh>
  );
}

interface ValuesProps {
  pipeline: string;
  values: StatusValue[];
  chosen: string | null;
}

function ValuesTable({ pipeline, values, chosen }: ValuesProps) {
  return (
    <Table
      label="Values"
      rows={values}
      keyOf={({ value }) => value ?? ''}
      columns={[
        {
          name: 'Layer',
          cell: (v) => <Words text={v.layer ?? (v.value === null ? 'none yet' : 'not in the definition')} />,
        },
        {
          name: 'Value',
          cell: ({ value, name }) =>
            value === null ? (
              'no value'
            ) : (
              <a
                href={to('status', pipeline, { value })}
                class={value === chosen ? 'chosen' : undefined}
                aria-current={value === chosen ? 'true' : undefined}
              >
                <Words text={value} most={80} /> {name !== value && <Words text={name} most={80} />}
              </a>
            ),
        },
        { name: 'Meaning', cell: (v) => <Words text={v.description} most={120} /> },
        { name: 'Rows', isNumber: true, cell: (v) => (v.rows === 0 ? '' : <b>{count(v.rows)}</b>) },
        { name: 'Median', cell: (v) => (v.rows === 0 ? '' : <Ago at={v.median} />) },
        { name: 'Oldest', cell: (v) => (v.rows === 0 ? '' : <Ago at={v.oldest} />) },
      ]}
    />
  );
}

const writers = { engine: 'the engine', person: 'a person, by writing it', call: 'the engine, after a person’s call' };

function Moves({ of: { moves, values }, value }: { of: Answer; value: string }) {
  const name = (to: string) => values.find((known) => known.value === to)?.name;
  return (
    <>
      <h3>
        Moves from <Words text={value} most={80} />
      </h3>
      <Table
        label="Moves"
        rows={moves.filter(({ from }) => from === value)}
        keyOf={({ to: next, by, means }) => `${next} ${by} ${means}`}
        none="Nothing leads from here: it is an end."
        columns={[
          {
            name: 'Next value',
            cell: ({ to: next }) => (
              <>
                <Words text={next} most={80} /> {name(next) !== next && <Words text={name(next)} most={80} />}
              </>
            ),
          },
          { name: 'Author', cell: ({ by }) => writers[by] },
          { name: 'Effect', cell: ({ means }) => <Words text={means} most={200} /> },
        ]}
      />
    </>
  );
}

function Rows({ pipeline, value }: { pipeline: string; value: string }) {
  const rows = usePoll(`status ${pipeline} ${value}`, () => read<{ rows: StatusRow[] }>('status', { pipeline, value }));
  return (
    <>
      <h3>Rows, the oldest first</h3>
      <Fresh of={rows.value}>
        {({ rows: found }) => (
          <Table
            label="Rows"
            rows={found}
            keyOf={({ entity }) => entity}
            none="No row has this value."
            columns={[
              { name: 'Row', cell: ({ entity, run }) => <Words text={run?.label ?? entity} most={120} /> },
              { name: 'Since', cell: ({ since }) => <Moment at={since} /> },
              { name: 'Run', cell: ({ run }) => (run ? <a href={to('run', run.run)}>{run.run}</a> : 'none yet') },
              { name: 'Status', cell: ({ run }) => run && <State is={run.status}>{run.ended_as ?? run.status}</State> },
            ]}
          />
        )}
      </Fresh>
    </>
  );
}
