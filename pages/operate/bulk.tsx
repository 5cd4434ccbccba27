// A verb over many runs: first how many, then its way, which goes on when the page is closed.

import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Bulk as Answer, ListedRun } from '../../operators/answers.ts';
import { count, forecast, many } from '../../operators/numbers.ts';
import { verbs as table } from '../../operators/verbs.ts';
import { Moment } from '../base/format.tsx';
import { Fresh } from '../base/fresh.tsx';
import { complain } from '../base/messages.tsx';
import { usePoll } from '../base/poll.ts';
import { go, numberIn, type Route, to } from '../base/route.ts';
import { Table } from '../base/table.tsx';
import { Words } from '../base/words.tsx';
import { ActButton, ActionButton, mayNotAct } from './actions.tsx';
import { act, read } from './api.ts';
import { State } from './states.tsx';

const verbs = ['retry', 'cancel', 'hurry'] as const;
type Verb = (typeof verbs)[number];

/** The status that runs must have for a verb. */
const statusFor: Record<Verb, string> = { retry: 'failed', cancel: 'running', hurry: 'running' };

interface ButtonsProps {
  filter: Record<string, unknown>;
  /** Runs that are chosen one by one; all that match where there is none. */
  chosen?: number[];
  verbs?: readonly Verb[];
}

/** Buttons that ask for a preview of a verb. */
export function BulkButtons({ filter, chosen = [], verbs: shown = verbs }: ButtonsProps) {
  const { pipeline, status, text } = filter;
  async function preview(verb: Verb): Promise<void> {
    const all = chosen.length > 0 ? { pipeline, runs: chosen } : filter;
    try {
      const { bulk } = await act<Answer>({
        verb: 'preview',
        do: { verb },
        filter: { ...all, status: statusFor[verb] },
      });
      go(to('bulk', bulk));
    } catch (error) {
      complain(error);
    }
  }
  const refused = (verb: Verb) =>
    !pipeline
      ? 'Choose a pipeline first: a bulk is about one.'
      : status && status !== statusFor[verb]
        ? `It is for runs that are ${statusFor[verb]}.`
        : text && chosen.length === 0
          ? 'A text finds runs, but bounds no bulk: choose runs, or leave it out.'
          : undefined;
  return (
    <div class="actions">
      {shown.map((verb) => (
        <ActButton
          key={verb}
          label={`${verb[0]?.toUpperCase()}${verb.slice(1)} ${chosen.length > 0 ? `${chosen.length} chosen` : 'all'} …`}
          refused={refused(verb)}
          harms={table[verb].destroys}
          onClick={() => preview(verb)}
        />
      ))}
    </div>
  );
}

export function Bulk({ of }: Route) {
  // Helps a bulk that runs on while somebody looks.
  const bulk = usePoll(`bulk ${of}`, () => act<Answer>({ verb: 'continue', bulk: numberIn(of) }), 1500);
  return (
    <Fresh of={bulk.value}>
      {(found) => (
        <>
          <p>
            <State is={found.state} /> <b>{found.do.verb}</b> {found.do.stage && `at ${found.do.stage} `}in{' '}
            <Words text={found.filter.pipeline} most={60} />: {many(found.preview.runs, 'run')}, from{' '}
            <Moment at={found.preview.oldest} /> to <Moment at={found.preview.newest} />.
          </p>
          {found.preview.cost_usd !== undefined && (
            <p>It costs {forecast(found.preview)}, by what its stages have cost in the mean; children are not in it.</p>
          )}
          <p class="hint">
            Filter: <Words text={tellFilter(found.filter)} most={500} />
            {found.filter.before ? (
              <>
                , before <Moment at={String(found.filter.before)} />
              </>
            ) : null}
            .
          </p>
          {found.state === 'previewed' && !found.tried && <p>Nothing is done yet.</p>}
          {found.tried && <Tried run={found.tried} />}
          {found.state === 'running' && <p role="status">It goes on when you close this page, more slowly.</p>}
          <Progress of={found} />
          {(found.state !== 'previewed' || found.tried) && (
            <dl>
              <dt>Done</dt>
              <dd>{count(found.done)}</dd>
              <dt>Passed over</dt>
              <dd>{count(passedOver(found))} that had gone on, or matched no longer</dd>
              <dt>Locked</dt>
              <dd>{count(found.locked)}</dd>
              <dt>Faults</dt>
              <dd>{count(found.faults)}</dd>
            </dl>
          )}
          <Steps found={found} />
          {found.faults > 0 && (
            <Table
              label="Faults"
              rows={found.faults_by_run ?? []}
              keyOf={({ run }) => run}
              columns={[
                { name: 'Run', cell: ({ run }) => <a href={to('run', run)}>{run}</a> },
                { name: 'Reason', cell: ({ message }) => <Words text={message} most={300} /> },
              ]}
            />
          )}
        </>
      )}
    </Fresh>
  );
}

/** Returns a bulk's filter in words: the conditions that a run must match. */
function tellFilter(filter: Record<string, unknown>): string {
  const { before, ...fields } = filter;
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([field, value]) => `${field} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ');
}

/** How many had gone on or matched no longer: those that a slice met, and, once all is done, those that none found any more. */
function passedOver({ state, preview, done, passed_over, faults }: Answer): number {
  const all = Number(preview.runs.replaceAll(',', ''));
  return state === 'done' && all > 0 ? Math.max(passed_over, all - done - faults) : passed_over;
}

/** How much is behind it; where the count stops at 10,000, the bar moves without saying how much is left. */
function Progress({ of: found }: { of: Answer }) {
  const { state, preview, done, faults } = found;
  const all = Number(preview.runs.replaceAll(',', ''));
  if (state === 'previewed' || all === 0) return null;
  if (Number.isNaN(all)) {
    const label = `${count(done + passedOver(found) + faults)} of ${many(preview.runs, 'run')}`;
    return state === 'running' ? <progress aria-label={label} /> : null;
  }
  const behind = Math.min(all, done + passedOver(found) + faults);
  return <progress max={all} value={behind} aria-label={`${count(behind)} of ${many(all, 'run')}`} />;
}

/** The run that was tried first, and what has come of it up to now. */
function Tried({ run }: { run: number }) {
  const found = usePoll(`tried ${run}`, () => read<{ runs: ListedRun[] }>('runs', { runs: [run] }), 2000);
  return (
    <Fresh of={found.value}>
      {({ runs: [one] }) => (
        <p role="status">
          Tried first: <a href={to('run', run)}>run {run}</a>
          {one && (
            <>
              {' '}
              <State is={one.status} />{' '}
              {one.at?.map(({ stage, state, retries, error }) => (
                <span key={stage}>
                  {stage} is {state}{' '}
                  {/* The error of a stage that an operator has queued again is the one from before. */}
                  {(state !== 'queued' || retries > 0) && <Words text={error?.code} most={80} />}{' '}
                </span>
              ))}
            </>
          )}
        </p>
      )}
    </Fresh>
  );
}

function Steps({ found: { bulk, state, tried, do: action, filter, preview, reason } }: { found: Answer }) {
  const none = preview.runs === '0' ? 'No run matches.' : undefined;
  const may = state === 'previewed' ? none : `It is ${state}.`;
  const isOver = !['previewed', 'running'].includes(state);
  const runs = useRef<HTMLAnchorElement>(null);
  const wasOver = useRef(isOver);
  useLayoutEffect(() => {
    // The button that had the focus is gone.
    if (isOver && !wasOver.current && document.activeElement === document.body) runs.current?.focus();
    wasOver.current = isOver;
  }, [isOver]);
  if (isOver) {
    return (
      <p>
        <a ref={runs} href={to('runs', '', { pipeline: filter.pipeline })}>
          Runs of {filter.pipeline}
        </a>
      </p>
    );
  }
  return (
    <div class="actions">
      <ActionButton
        action={{
          label: tried ? 'Try another' : 'Try one first',
          what: 'The newest run goes first. Its result shows here, and the rest waits until you begin it.',
          request: { verb: 'try', bulk },
          refused: mayNotAct() ?? may,
          reason,
        }}
      />
      <ActionButton
        action={{
          label: tried ? 'Do the rest' : 'Begin',
          isMain: true,
          title: `${action.verb[0]?.toUpperCase()}${action.verb.slice(1)} ${many(preview.runs, 'run')} of ${filter.pipeline}`,
          what: `Runs are taken in slices of 500. A run that has gone on, or no longer matches, is passed over.`,
          request: { verb: 'begin', bulk },
          refused: mayNotAct() ?? may,
          reason,
          done: 'It has begun.',
        }}
      />
      <ActionButton
        action={{
          label: 'Abort',
          what: 'What is done stays done; nothing more is.',
          request: { verb: 'abort', bulk },
          harms: true,
        }}
      />
    </div>
  );
}
