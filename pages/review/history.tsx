// The steps that an article has taken: when, by whom, and what was changed.

import { span } from '../../operators/numbers.ts';
import { Moment } from '../base/format.tsx';
import { Table } from '../base/table.tsx';
import { Words } from '../base/words.tsx';
import { asText, codeName, person } from './names.ts';
import type { Step } from './project.ts';

export function History({ steps }: { steps: Step[] }) {
  return (
    <Table
      label="History"
      id="history"
      rows={steps}
      keyOf={({ id }) => id}
      columns={[
        { name: 'When', cell: ({ changed_at }) => <Moment at={changed_at} /> },
        { name: 'From', cell: ({ from_status }) => (from_status === null ? '' : codeName(from_status)) },
        { name: 'To', cell: ({ to_status }) => codeName(to_status) },
        { name: 'By', cell: ({ changed_by }) => <Words text={person(changed_by)} /> },
        { name: 'Time there', cell: ({ duration_ms }) => span(duration_ms) },
        { name: 'What changed', cell: Changes },
      ]}
    />
  );
}

function Changes({ changes }: Step) {
  const changed = Object.entries(changes ?? {});
  if (changed.length === 0) return null;
  return (
    <ul>
      {changed.map(([field, change]) => (
        <li key={field}>
          {field}:{' '}
          <del>
            <Words text={asText(change.old)} most={2000} />
          </del>{' '}
          →{' '}
          <ins>
            <Words text={asText(change.new)} most={2000} />
          </ins>
        </li>
      ))}
    </ul>
  );
}
