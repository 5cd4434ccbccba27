// One run: where it stands and why, its attempts in time, what it came to, and what may be done to it.
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Run as Answer, Attempt, Pipeline, WholeAttempt } from '../../operators/answers.ts';
import { copiesOf, saidOfCopy } from '../../operators/copies.ts';
import { costOf, count, many, span } from '../../operators/numbers.ts';
import { sayOrigin } from '../../operators/origin.ts';
import { saidOf } from '../../operators/remedies.ts';
import { verbs } from '../../operators/verbs.ts';
import { visible } from '../../operators/visible.ts';
import { heldUpAt, queuedAt, type Wait, waitsOf } from '../../operators/waits.ts';
import { databaseNow, Moment } from '../base/format.tsx';
import { Fresh, Trouble } from '../base/fresh.tsx';
import { usePoll } from '../base/poll.ts';
import { numberIn, type Route, to } from '../base/route.ts';
import { Table } from '../base/table.tsx';
import { Words } from '../base/words.tsx';
import { type Action, ActionButton, againChoices, isForGood } from './actions.tsx';
import { read } from './api.ts';
import { Decisions, Turns } from './conversation.tsx';
import { attemptsAddress, logAddress, rowAddress } from './dashboard.ts';
import { EditButtons, type Edited } from './edit.tsx';
import { Graph } from './graph.tsx';
import { Help } from './help.tsx';
import { JournalEntries } from './journal.tsx';
import { PipelineLink, Reason } from './links.tsx';
import { State, shapeOf } from './states.tsx';
import { Tree } from './tree.tsx';
import { Tries } from './tries.tsx';
import { Waterfall } from './waterfall.tsx';

export function Run({ of }: Route) {
  const run = usePoll(`run ${of}`, () => read<Answer>('run', { run: numberIn(of) }));
  return (
    <Fresh of={run.value}>
      {(found) => (
        <>
          <Facts run={found} />
          <Actions run={found} />
          <Waits run={found} waits={waitsOf(found)} />
          {queuedAt(found).length > 0 && <HeldUp run={found} />}
          {(found.unattended ?? []).map((of) => (
            <Reason key={of.stage} of={of} stage={of.stage} />
          ))}
          <Errors run={found} />
          <Doubts run={found} />
          <Graph pipeline={found.pipeline} stages={found.stages} tell={tellOf(found)} />
          {found.metadata && (
            <Tree
              value={found.metadata.cut ?? found.metadata.value}
              name={
                found.metadata.bytes ? `the beginning of ${count(found.metadata.bytes)} bytes of metadata` : 'metadata'
              }
            />
          )}
          <h3>Attempts</h3>
          <Waterfall run={found} />
          <Attempts run={found} />
          <Tries run={found} />
          <Children run={found} />
          <Origins run={found} />
          <Turns turns={found.turns} />
          <Decisions decisions={found.decisions} />
          <h3>Journal</h3>
          <JournalEntries entries={found.journal} />
        </>
      )}
    </Fresh>
  );
}

/** Returns the text of each stage's node in the graph: its state in this run, and how often it was tried. */
function tellOf(run: Answer) {
  const { stages, attempts } = run;
  const doubts = new Set(doubtful(run).map(({ stage }) => stage));
  const states = new Map(stages.map(({ stage, state }) => [stage, state]));
  return (stage: string) => {
    const state = states.get(stage) ?? 'not begun';
    const tries = attempts.filter((attempt) => attempt.stage === stage && !attempt.superseded).length;
    const doubt = doubts.has(stage) ? `${shapeOf('doubtful')} doubtful` : '';
    return {
      lines: [
        `${shapeOf(state)} ${state}`,
        [tries > 1 ? `${tries} tries` : '', doubt].filter(Boolean).join(', '),
      ].filter(Boolean),
      isBad: state === 'failed',
    };
  };
}

function Facts({ run }: { run: Answer }) {
  const { pipeline, entity, label, status, ended_as, began_at, ended_at, trace, parent, copy_of } = run;
  const copies = copiesOf(run);
  const [row, attempts, logs] = [rowAddress(run), attemptsAddress(run), logAddress(run)];
  return (
    <>
      <p>
        <State is={status}>{ended_as ?? status}</State>{' '}
        <b>
          <Words text={label ?? entity} most={200} />
        </b>
      </p>
      <dl>
        <dt>Pipeline</dt>
        <dd>
          <a href={to('pipeline', pipeline)}>{pipeline}</a>, version {run.version}
        </dd>
        <dt>Row</dt>
        <dd>
          <a href={to('runs', '', { pipeline, entity })}>
            <Words text={entity} most={200} />
          </a>{' '}
          of {run.table.name}
          {row && (
            <>
              , <a href={row}>in the table editor</a>, <a href={attempts}>its attempts in the SQL editor</a>
            </>
          )}
        </dd>
        <dt>Began</dt>
        <dd>
          <Moment at={began_at} />
          {ended_at && `, took ${span(Date.parse(ended_at) - Date.parse(began_at))}`}
        </dd>
        <dt>Cost</dt>
        <dd>{costOf(run) || 'none reported'}</dd>
        {trace && (
          <>
            <dt>Trace</dt>
            <dd>
              {trace}
              {logs && (
                <>
                  , <a href={logs}>its lines in the log explorer</a>
                </>
              )}
            </dd>
          </>
        )}
        {copy_of && (
          <>
            <dt>A copy</dt>
            <dd>
              of <a href={to('run', copy_of)}>run {copy_of}</a>, {saidOfCopy(run)}
            </dd>
          </>
        )}
        {copies.length > 0 && (
          <>
            <dt>Copies</dt>
            <dd>
              {copies.map((copy) => (
                <>
                  <a href={to('run', copy)}>run {copy}</a>{' '}
                </>
              ))}
            </dd>
          </>
        )}
        {parent && (
          <>
            <dt>Parent</dt>
            <dd>
              <a href={to('run', parent)}>run {parent}</a>
            </dd>
          </>
        )}
      </dl>
    </>
  );
}

/** The pauses and throttles where the run is queued, asked only then: the answer reads the pipeline's whole backlog. */
function HeldUp({ run }: { run: Answer }) {
  const { pipeline } = run;
  const found = usePoll(`pipeline ${pipeline}`, () => read<Pipeline>('pipeline', { pipeline }), 15_000).value;
  if (found.error) return <Trouble error={found.error} />;
  return found.answer ? <Waits run={run} waits={heldUpAt(queuedAt(run), found.answer)} /> : null;
}

/** Says what the run waits for, and what ends the wait. */
function Waits({ run, waits }: { run: Answer; waits: Wait[] }) {
  return (
    <>
      {waits.map((wait) => (
        <p class={/pause|throttle/.test(wait.kind) ? 'trouble' : 'hint'} key={`${wait.kind} ${wait.stage}`}>
          <Words text={wait.why} most={600} />
          <WaitEnd of={wait} run={run} />
        </p>
      ))}
    </>
  );
}

function WaitEnd({ of: { kind, stage, attempt, until }, run: { run, pipeline } }: { of: Wait; run: Answer }) {
  if (kind === 'person') {
    return (
      <>
        : <code>select public.millrace_decide({attempt}, ANSWER)</code> answers as JSON. Skip goes on without an answer.
      </>
    );
  }
  if (kind === 'children') {
    return (
      <>
        : <a href={to('runs', '', { parent: run })}>its children</a>.
      </>
    );
  }
  if (kind === 'job') return <>. The job's end ends the wait; Fail or Skip ends it by hand.</>;
  return (
    <>
      {until && (
        <>
          , until <Moment at={until} />
        </>
      )}
      . {kind === 'pause' ? 'Unpause' : 'Unthrottle'} at{' '}
      <PipelineLink of={pipeline} {...(stage !== null && { stage })} /> lets it go on.
    </>
  );
}

type Standing = NonNullable<Answer['at']>[number];

/** Whether a try that failed is to be made again, and not within a second. */
const waitsForItsTime = ({ state, retries, due_at }: Standing) =>
  state === 'queued' && retries > 0 && due_at !== undefined && Date.parse(due_at) > databaseNow() + 1000;

function Actions({ run: { run, status, attempts, at = [] } }: { run: Answer }) {
  const isOver = status === 'running' ? undefined : `It is ${status}.`;
  const stages = at.map(({ stage }) => stage);
  const live = at.filter(({ state }) => ['queued', 'started', 'waiting'].includes(state)).map(({ stage }) => stage);
  const actions: Action[] = [
    {
      label: 'Retry',
      what: 'The stages that failed or were cancelled are tried again, with tries as at the beginning.',
      request: { verb: 'retry', run },
      refused: ['failed', 'cancelled'].includes(status)
        ? undefined
        : `It is ${status}; only what failed is tried again.`,
    },
    {
      label: 'Hurry',
      what: 'A retry that waits for its time goes at once.',
      request: { verb: 'hurry', run },
      refused: isOver ?? (at.some(waitsForItsTime) ? undefined : 'No retry of it waits for its time.'),
    },
    {
      label: 'Cancel',
      what: 'The run ends. Results of attempts in work are discarded.',
      request: { verb: 'cancel', run },
      refused: isOver,
      harms: verbs.cancel.destroys,
    },
    {
      label: 'Skip',
      what: 'The run goes on without the stage, with null as its result.',
      fields: [{ name: 'stage', label: 'Stage', choices: stages }],
      request: ({ stage }) => ({ verb: 'skip', run, stage }),
      refused: stages.length > 0 ? undefined : `It is ${status}, and stands at no stage.`,
      harms: verbs.skip.destroys,
    },
    {
      label: 'Fail',
      what: 'The stage fails with what you write. The result of an attempt in work is discarded.',
      fields: [
        { name: 'stage', label: 'Stage', choices: live },
        { name: 'message', label: 'The error that it gets', isNeeded: true },
        { name: 'again', label: 'Tried again', choices: againChoices },
      ],
      request: ({ stage, message, again }) => ({ verb: 'fail', run, stage, message, permanent: isForGood(again) }),
      refused: live.length > 0 ? undefined : 'No stage of it is queued, in work or waiting.',
      harms: verbs.fail.destroys,
    },
    {
      label: 'Reset',
      what: `The run begins anew from its first stage; what came of its ${attempts.length === 1 ? 'attempt' : `${attempts.length} attempts`} is superseded.`,
      request: { verb: 'reset', run },
      harms: verbs.reset.destroys,
    },
  ];
  return (
    <div class="actions">
      {actions.map((action) => (
        <ActionButton key={action.label} action={action} />
      ))}
    </div>
  );
}

/** Says what happens after an error: a retry, when, or none. */
function Next({ of: standing }: { of: Standing }) {
  if (waitsForItsTime(standing)) {
    return (
      <>
        It is tried again at <Moment at={standing.due_at} />, or at once by Hurry.
      </>
    );
  }
  if (standing.state === 'queued') return <>It is tried again as soon as a worker takes it.</>;
  if (standing.state === 'failed') {
    return <>It is not tried again by itself. Retry goes on from here, once the cause is gone; Reset begins anew.</>;
  }
  return <>This is what the last try met.</>;
}

/** The last lines of an attempt's log, as its handler wrote them. */
function Log({ text }: { text: string | undefined }) {
  if (!text) return null;
  return (
    <details class="log">
      <summary>Last log lines</summary>
      <pre>{visible(text)}</pre>
    </details>
  );
}

function Errors({ run: { at = [], attempts } }: { run: Answer }) {
  /** The log of the try that failed: of a queued retry, its parent's. */
  const logOf = (standing: Standing) => {
    const own = attempts.find(({ attempt }) => attempt === standing.attempt);
    if (own?.deleted_after) return `deleted after ${many(own.deleted_after, 'day')}`;
    return own?.log ?? attempts.find(({ attempt }) => attempt === own?.parent)?.log;
  };
  // A stage that was cancelled since another one failed has no error of its own.
  const isFailed = at.some(({ state }) => state === 'failed');
  return (
    <>
      {at.map((standing) =>
        standing.error && !(isFailed && standing.state === 'cancelled') ? (
          <section class="trouble" key={standing.attempt} aria-label={`Error at ${standing.stage}`}>
            <p>
              <b>{standing.stage}</b> <State is={standing.state} /> <Words text={standing.error.code} most={200} />
            </p>
            <p>
              <Words text={saidOf(standing.error)} most={2000} />
            </p>
            <Help error={standing.error} />
            <Log text={logOf(standing)} />
            <p class="hint">
              <Next of={standing} />
            </p>
          </section>
        ) : null,
      )}
    </>
  );
}

/** The attempts that stand and whose results say what they may lack. */
const doubtful = ({ attempts }: Answer) => attempts.filter(({ doubts, superseded }) => doubts && !superseded);

function Doubts({ run }: { run: Answer }) {
  return (
    <>
      {doubtful(run).map(({ attempt, stage, doubts }) => (
        <p class="trouble" key={attempt}>
          <b>{stage}</b> <State is="doubtful" /> <Words text={doubts} most={2000} />
        </p>
      ))}
    </>
  );
}

function Attempts({ run: { run, attempts } }: { run: Answer }) {
  const last = Math.max(...attempts.map(({ attempt }) => attempt));
  const took = ({ started_at, ended_at }: Attempt) =>
    started_at && ended_at ? span(Date.parse(ended_at) - Date.parse(started_at)) : '–';
  return (
    <Table
      label="Attempts"
      rows={attempts}
      keyOf={({ attempt }) => attempt}
      columns={[
        { name: 'Stage', cell: (a) => `${a.stage}, try ${a.retries + 1}` },
        { name: 'State', cell: (a) => <State is={a.superseded ? 'superseded' : a.state} /> },
        { name: 'Queued', cell: (a) => <Moment at={a.queued_at} /> },
        { name: 'Started', cell: (a) => <Moment at={a.started_at} /> },
        { name: 'Took', isNumber: true, cell: took },
        { name: 'Error', cell: (a) => <Words text={a.error?.code} most={80} /> },
        {
          name: 'Result',
          cell: (a) => <Result of={{ run, stage: a.stage, attempt: a.attempt, last }} isOver={!!a.superseded} />,
        },
      ]}
    />
  );
}

/** The result of an attempt, read when an operator opens it. */
function Result({ of, isOver }: { of: Edited; isOver: boolean }) {
  const { attempt, stage } = of;
  const found = useSignal<WholeAttempt | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  const place = useRef<HTMLDivElement>(null);
  // The button that was pressed is gone.
  useLayoutEffect(() => place.current?.focus(), [found.value]);
  async function look(): Promise<void> {
    try {
      found.value = await read<WholeAttempt>('attempt', { attempt });
    } catch (refusal) {
      error.value = refusal;
    }
  }
  if (error.value) return <Trouble error={error.value} />;
  if (!found.value) {
    return (
      <button type="button" aria-label={`Show attempt ${attempt} of ${stage}`} onClick={look}>
        Show
      </button>
    );
  }
  const { payloads, output, error: fault, log, deleted_after: days, form = null, row = null } = found.value;
  return (
    <div tabIndex={-1} ref={place}>
      {!payloads && <p class="hint">Results are for operators who see payloads.</p>}
      {fault && <Tree value={fault} name="error" />}
      <Log text={log} />
      {output && (
        <Tree
          value={output.cut ?? output.value}
          name={output.bytes ? `the beginning of ${count(output.bytes)} bytes` : 'result'}
        />
      )}
      {days && <span class="hint">deleted after {many(days, 'day')}</span>}
      {payloads && !output && !fault && !days && <span class="hint">none</span>}
      {payloads && !isOver && output?.cut === undefined && (
        <EditButtons of={of} form={form} result={output?.value} row={row} />
      )}
    </div>
  );
}

/** The origin of the results that stand. */
function Origins({ run }: { run: Answer }) {
  return (
    <details>
      <summary>Origins of the results</summary>
      <Table
        label="Origins of the results"
        rows={run.stages.filter(({ made_by: by }) => by)}
        keyOf={({ stage }) => stage}
        columns={[
          { name: 'Stage', cell: ({ stage }) => stage },
          { name: 'Needs', cell: ({ needs }) => needs.join(', ') },
          { name: 'Made by', cell: (of) => <Words text={sayOrigin(run, of)} most={500} /> },
        ]}
      />
    </details>
  );
}

function Children({ run: { run, children } }: { run: Answer }) {
  if (children.length === 0) return null;
  return (
    <>
      <h3>Children</h3>
      <Table
        label="Children"
        rows={children}
        keyOf={({ stage, pipeline }) => `${stage} ${pipeline}`}
        columns={[
          { name: 'Stage', cell: (c) => c.stage },
          {
            name: 'Runs',
            cell: (c) => (
              <a href={to('runs', '', { parent: run, pipeline: c.pipeline })}>
                {count(c.spawned)} of {c.pipeline}
              </a>
            ),
          },
          {
            name: 'Under way',
            isNumber: true,
            cell: (c) => (
              <a href={to('runs', '', { parent: run, pipeline: c.pipeline, status: 'running' })}>
                {count(Math.max(0, c.spawned - c.completed - c.failed - c.cancelled))}
              </a>
            ),
          },
          { name: 'Completed', isNumber: true, cell: (c) => count(c.completed) },
          {
            name: 'Failed',
            isNumber: true,
            cell: (c) => (
              <a href={to('runs', '', { parent: run, pipeline: c.pipeline, status: 'failed' })}>{count(c.failed)}</a>
            ),
          },
          { name: 'Cancelled', isNumber: true, cell: (c) => count(c.cancelled) },
        ]}
      />
    </>
  );
}
