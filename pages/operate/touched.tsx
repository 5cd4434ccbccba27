// Tells what a change of a stage or its prompt touches, and what it costs about to make these results again.
import { useState } from 'preact/hooks';
import type { Touched as Answer } from '../../operators/answers.ts';
import { count, dollars } from '../../operators/numbers.ts';
import { Fresh } from '../base/fresh.tsx';
import { usePoll } from '../base/poll.ts';
import { to } from '../base/route.ts';
import { Table } from '../base/table.tsx';
import { Words } from '../base/words.tsx';
import { read } from './api.ts';

interface Of {
  pipeline: string;
  stage: string;
}

/** Asks once it is opened: the answer reads 2,500 runs. */
export function Touched(of: Of) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Effects of a change of {of.stage}</summary>
      {isOpen && <Made {...of} />}
    </details>
  );
}

function Made({ pipeline, stage }: Of) {
  const touched = usePoll(`touched ${pipeline} ${stage}`, () => read<Answer>('touched', { pipeline, stage }), 300_000);
  return (
    <Fresh of={touched.value}>
      {({ looked, whole, made }) => (
        <>
          <p class="hint">
            Of the newest {count(looked)}
            {!whole && '+'} <a href={to('runs', '', { pipeline })}>runs</a>, where all that match can be reset.
          </p>
          <Table
            label="Effects of a change"
            rows={made}
            keyOf={({ run_ids }) => run_ids[0] ?? 0}
            none="No row has a result of this stage."
            columns={[
              { name: 'Model', cell: ({ model }) => <Words text={model} most={80} /> },
              { name: 'Prompt', cell: ({ prompt }) => <Words text={prompt} most={80} /> },
              { name: 'Release', cell: ({ release }) => <Words text={release} most={40} /> },
              { name: 'Rows', isNumber: true, cell: ({ rows }) => count(rows) },
              { name: 'Cost of a repeat, about', isNumber: true, cell: ({ cost_usd }) => dollars(cost_usd) },
            ]}
          />
        </>
      )}
    </Fresh>
  );
}
