// The conversation of an agent or the steps of a stage in a run, and the questions that people were asked.

import type { Decision, Turn } from '../../operators/answers.ts';
import { count, dollars } from '../../operators/numbers.ts';
import { Moment } from '../base/format.tsx';
import { Table } from '../base/table.tsx';
import { Words } from '../base/words.tsx';
import { State } from './states.tsx';
import { Tree } from './tree.tsx';

export function Turns({ turns }: { turns: Turn[] }) {
  if (turns.length === 0) return null;
  return (
    <>
      <h3>Turns and steps</h3>
      {turns.length === 100 && <p class="hint">The newest hundred turns.</p>}
      <Table
        label="Turns"
        rows={turns}
        keyOf={({ stage, stage_run, turn }) => `${stage} ${stage_run} ${turn}`}
        columns={[
          { name: 'Time', cell: (t) => <Moment at={t.at} /> },
          { name: 'Stage', cell: (t) => `${t.stage}, turn ${t.turn}` },
          {
            name: 'Author',
            cell: (t) => (t.kind === 'model' ? 'the model' : <Words text={`tool ${t.tool}`} most={80} />),
          },
          { name: 'Action', cell: (t) => <Words text={t.what} most={160} /> },
          { name: 'Text', cell: (t) => <Said of={t} /> },
          { name: 'Tokens', isNumber: true, cell: (t) => (t.tokens === undefined ? '' : count(t.tokens)) },
          { name: 'Cost', isNumber: true, cell: (t) => (t.cost_usd === undefined ? '' : dollars(t.cost_usd)) },
        ]}
      />
    </>
  );
}

/** The texts of a turn: question, arguments and answer. An operator who may not see payloads gets none. */
function Said({ of: { asked, arguments: handed, output } }: { of: Turn }) {
  const parts = { asked, 'handed over': handed, answered: output };
  const said = Object.entries(parts).filter(([, text]) => text);
  return (
    <>{said.length > 0 && <Tree name={said.map(([name]) => name).join(', ')} value={Object.fromEntries(said)} />}</>
  );
}

export function Decisions({ decisions }: { decisions: Decision[] }) {
  if (decisions.length === 0) return null;
  return (
    <>
      <h3>Decisions</h3>
      <p class="hint">
        Whoever the project lets decide answers with millrace_decide(attempt, …), or skip the stage as an operator.
      </p>
      <Table
        label="Decisions"
        rows={decisions}
        keyOf={({ attempt }) => attempt}
        columns={[
          { name: 'Stage', cell: (d) => `${d.stage}, attempt ${d.attempt}` },
          { name: 'State', cell: (d) => <Answered of={d} /> },
          { name: 'Asked', cell: (d) => <Moment at={d.asked_at} /> },
          { name: 'Until', cell: (d) => <Moment at={d.deadline_at} /> },
          { name: 'Author', cell: (d) => <Words text={d.decided_by} most={60} /> },
          {
            name: 'Answer',
            cell: (d) =>
              d.decision ? (
                <Tree name="answer" value={d.decision.cut ?? d.decision.value} />
              ) : (
                <Tree name="may be" value={d.schema} />
              ),
          },
        ]}
      />
    </>
  );
}

function Answered({ of: { decided_at, closed_at, closed_why } }: { of: Decision }) {
  if (decided_at) {
    return (
      <>
        <State is="done">decided</State> <Moment at={decided_at} />
      </>
    );
  }
  if (!closed_at) return <State is="waiting">waits for an answer</State>;
  return (
    <>
      <State is="cancelled">closed</State> <Words text={closed_why} most={200} />
    </>
  );
}
