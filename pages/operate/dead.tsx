// Dead letters by pipeline, stage and error: how many, since when, and the way to them.
import { Ago } from '../base/format.tsx';
import { Fresh } from '../base/fresh.tsx';
import { usePoll } from '../base/poll.ts';
import { type Route, to } from '../base/route.ts';
import { Table } from '../base/table.tsx';
import { Words } from '../base/words.tsx';
import type { DeadGroup } from './answers.ts';
import { BulkButtons } from './bulk.tsx';
import { read } from './door.ts';
import { Filter } from './filter.tsx';
import { asked } from './list.tsx';

export function DeadLetters(route: Route) {
  const query = asked(route.query, ['pipeline']);
  const groups = usePoll(`dead ${JSON.stringify(query)}`, () => read<{ groups: DeadGroup[] }>('dead_letters', query));
  const filterOf = ({ pipeline, stage, error_code }: DeadGroup) => ({ pipeline, stage, error_code, status: 'failed' });
  return (
    <>
      <Filter route={route} fields={[{ name: 'pipeline', label: 'Pipeline' }]} />
      <Fresh of={groups.value}>
        {({ groups }) => (
          <Table
            label="Dead letters"
            rows={groups}
            keyOf={({ pipeline, stage, error_code }) => `${pipeline} ${stage} ${error_code}`}
            none="There is no dead letter."
            columns={[
              { name: 'Pipeline', cell: (g) => <Words text={g.pipeline} most={60} /> },
              { name: 'Stage', cell: (g) => <Words text={g.stage} most={60} /> },
              { name: 'Error', cell: (g) => <Words text={g.error_code} most={80} /> },
              { name: 'Runs', isNumber: true, cell: (g) => <a href={to('runs', '', filterOf(g))}>{g.runs}</a> },
              { name: 'Oldest', cell: (g) => <Ago at={g.oldest} /> },
              { name: 'Newest', cell: (g) => <Ago at={g.newest} /> },
              { name: 'All of them', cell: (g) => <BulkButtons filter={filterOf(g)} verbs={['retry']} /> },
            ]}
          />
        )}
      </Fresh>
    </>
  );
}
