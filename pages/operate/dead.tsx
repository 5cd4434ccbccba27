// Dead letters by pipeline, stage and error: how many, since when, and the way to them.

import type { DeadGroup, ListedRun } from '../../operators/answers.ts';
import { saidOf } from '../../operators/remedies.ts';
import { Ago } from '../base/format.tsx';
import { Fresh } from '../base/fresh.tsx';
import { usePoll } from '../base/poll.ts';
import { type Route, to } from '../base/route.ts';
import { Table } from '../base/table.tsx';
import { Words } from '../base/words.tsx';
import { read } from './api.ts';
import { BulkButtons } from './bulk.tsx';
import { Filter } from './filter.tsx';
import { Help } from './help.tsx';
import { PipelineLink } from './links.tsx';
import { asked } from './list.tsx';

/** Of so many groups the newest run is asked for. */
const mostSamples = 20;

export function DeadLetters(route: Route) {
  const query = asked(route.query, ['pipeline']);
  const groups = usePoll(`dead ${JSON.stringify(query)}`, () => read<{ groups: DeadGroup[] }>('dead_letters', query));
  const filterOf = ({ pipeline, stage, error_code }: DeadGroup) => ({ pipeline, stage, error_code, status: 'failed' });
  return (
    <>
      <Filter route={route} fields={[{ name: 'pipeline', label: 'Pipeline' }]} />
      <Fresh of={groups.value}>
        {({ groups }) => {
          const sampled = new Set(groups.slice(0, mostSamples));
          return (
            <Table
              label="Dead letters"
              rows={groups}
              keyOf={({ pipeline, stage, error_code }) => `${pipeline} ${stage} ${error_code}`}
              none={
                query.pipeline
                  ? 'There is no dead letter here: runs that were retried are none.'
                  : 'There is no dead letter.'
              }
              columns={[
                { name: 'Pipeline', by: (g) => g.pipeline, cell: (g) => <PipelineLink of={g.pipeline} /> },
                {
                  name: 'Stage',
                  cell: (g) => (
                    <span class="name">
                      <PipelineLink of={g.pipeline} stage={g.stage} />
                    </span>
                  ),
                },
                {
                  name: 'Error',
                  cell: (g) => (
                    <span class="name">
                      <Words text={g.error_code} most={80} />
                    </span>
                  ),
                },
                {
                  name: 'Runs',
                  isNumber: true,
                  by: (g) => g.runs,
                  cell: (g) => <a href={to('runs', '', filterOf(g))}>{g.runs}</a>,
                },
                { name: 'Newest run', cell: (g) => sampled.has(g) && <Sample filter={filterOf(g)} /> },
                { name: 'Oldest', by: (g) => g.oldest, cell: (g) => <Ago at={g.oldest} /> },
                { name: 'Newest', by: (g) => g.newest, cell: (g) => <Ago at={g.newest} /> },
                { name: 'Actions', cell: (g) => <BulkButtons filter={filterOf(g)} verbs={['retry']} /> },
              ]}
            />
          );
        }}
      </Fresh>
    </>
  );
}

/** The newest run of a group, with what its error said. */
function Sample({ filter }: { filter: Record<string, unknown> }) {
  const found = usePoll(
    `sample ${JSON.stringify(filter)}`,
    () => read<{ runs: ListedRun[] }>('runs', { ...filter, limit: 1 }),
    60_000,
  );
  if (!found.value.answer) return <span class="hint">{found.value.error === undefined ? '…' : 'no answer'}</span>;
  const [run] = found.value.answer.runs;
  if (!run) return null;
  // Stages beside it were cancelled, with an error that says so.
  const error = run.at?.find(({ stage }) => stage === filter.stage)?.error;
  return (
    <div class="sample">
      <a href={to('run', run.run)}>
        <Words text={run.label ?? run.entity} most={60} />
      </a>
      : <Words text={error && saidOf(error)} most={160} />
      {error && (
        <div class="hint">
          <Help error={error} />
        </div>
      )}
    </div>
  );
}
