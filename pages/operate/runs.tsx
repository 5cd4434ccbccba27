// Runs by a filter, and what may be done to those that are chosen, or to all that match.
import { useSignal } from '@preact/signals';
import type { ListedRun } from '../../operators/answers.ts';
import { count, noneAmong, span } from '../../operators/numbers.ts';
import { rangeOf, ranges } from '../../operators/ranges.ts';
import { saidOf } from '../../operators/remedies.ts';
import { Ago, databaseNow, sinceMs } from '../base/format.tsx';
import { usePoll } from '../base/poll.ts';
import { type Route, to } from '../base/route.ts';
import { Table } from '../base/table.tsx';
import { Words } from '../base/words.tsx';
import { read } from './api.ts';
import { BulkButtons } from './bulk.tsx';
import { Filter } from './filter.tsx';
import { PipelineLink } from './links.tsx';
import { asked, List } from './list.tsx';
import { State } from './states.tsx';

const texts = ['pipeline', 'stage', 'status', 'error_code', 'entity', 'text', 'since', 'before'];
const numbers = ['parent'];

interface Count {
  count: number;
  /** Not null where there may be more. */
  next: string | null;
}

/** The beginning of a range that ends now, whatever began or ended it before. */
const sinceLast = (name: string) => ({
  since: new Date(databaseNow() - rangeOf(name).seconds * 1000).toISOString(),
  before: '',
});

export function Runs(route: Route) {
  const query = asked(route.query, texts, numbers);
  return (
    <>
      <Filter
        route={route}
        fields={[
          { name: 'pipeline', label: 'Pipeline' },
          { name: 'stage', label: 'Stage' },
          { name: 'status', label: 'Status', choices: ['running', 'completed', 'failed', 'cancelled'] },
          { name: 'error_code', label: 'Error' },
          { name: 'entity', label: 'Row' },
          { name: 'text', label: 'Text' },
          { name: 'last', label: 'Time', choices: ranges.map(({ name }) => name), into: sinceLast },
        ]}
      />
      <ListedRuns key={JSON.stringify(query)} query={query} />
    </>
  );
}

/** The runs that a filter finds, with what may be done to those that are chosen, or to all of them. */
export function ListedRuns({ query }: { query: Record<string, unknown> }) {
  const chosen = useSignal<number[]>([]);
  return (
    <List<ListedRun> name="runs" rows="runs" query={query}>
      {(runs, _, isEnd, pages) => (
        <>
          <div class="actions">
            <Matches of={query} />
            <BulkButtons
              filter={query}
              chosen={chosen.value.filter((run) => runs.some((shown) => shown.run === run))}
            />
          </div>
          <RunsTable
            of={query}
            runs={runs}
            chosen={chosen}
            none={isEnd ? 'No run matches.' : `${noneAmong(query.text, pages)}. There are more to look at.`}
          />
        </>
      )}
    </List>
  );
}

/** How many runs match, which the database counts to 2,500. */
function Matches({ of: query }: { of: Record<string, unknown> }) {
  const key = `count ${JSON.stringify(query)}`;
  const { answer } = usePoll(key, () => read<Count>('runs', { ...query, count: true }), 30_000).value;
  if (!answer || (answer.count === 0 && answer.next !== null)) return null;
  return (
    <p class="hint" role="status">
      {count(answer.count)}
      {answer.next !== null && '+'} match
    </p>
  );
}

interface TableProps {
  /** The filter; it names the pipeline where the table need not. */
  of: Record<string, unknown>;
  runs: ListedRun[];
  chosen: { value: number[] };
  none: string;
}

function RunsTable({ of: query, runs, chosen, none }: TableProps) {
  const all = runs.map(({ run }) => run);
  const isAll = runs.length > 0 && all.every((run) => chosen.value.includes(run));
  const choose = (some: number[], isOn: boolean) => {
    chosen.value = [...chosen.value.filter((run) => !some.includes(run)), ...(isOn ? some : [])];
  };
  const box = (name: string, some: number[], isOn: boolean) => (
    <input type="checkbox" aria-label={name} checked={isOn} onChange={(e) => choose(some, e.currentTarget.checked)} />
  );
  return (
    <Table
      label="Runs"
      rows={runs}
      keyOf={({ run }) => run}
      none={none}
      columns={[
        {
          name: (
            <span class="all">
              {box('All that are shown', all, isAll)} <span aria-hidden="true">All that are shown</span>
            </span>
          ),
          cell: (r) => box(`Run ${r.run}`, [r.run], chosen.value.includes(r.run)),
        },
        { name: 'Run', cell: (r) => <a href={to('run', r.run)}>{r.run}</a> },
        { name: 'Row', cell: (r) => <Words text={r.label ?? r.entity} most={80} /> },
        ...(query.pipeline ? [] : [{ name: 'Pipeline', cell: (r: ListedRun) => <PipelineLink of={r.pipeline} /> }]),
        { name: 'Status', cell: (r) => <State is={r.status}>{r.ended_as ?? r.status}</State> },
        {
          name: 'Stage',
          cell: (r) => (
            <div class="sample">
              <Standing run={r} />
            </div>
          ),
        },
        { name: 'Began', cell: (r) => <Ago at={r.began_at} /> },
        {
          name: 'Took',
          isNumber: true,
          cell: (r) => span(r.ended_at ? Date.parse(r.ended_at) - Date.parse(r.began_at) : sinceMs(r.began_at)),
        },
      ]}
    />
  );
}

/** The stages at which a run is, with the error of each. */
function Standing({ run }: { run: ListedRun }) {
  return (
    <>
      {(run.at ?? []).map(({ stage, state, attempt, error }) => (
        <div key={attempt}>
          <PipelineLink of={run.pipeline} stage={stage} /> <State is={state} />{' '}
          {error && state !== 'cancelled' && <Words text={`${error.code ?? ''}: ${saidOf(error) ?? ''}`} most={120} />}
        </div>
      ))}
    </>
  );
}
