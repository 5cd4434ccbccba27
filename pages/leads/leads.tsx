// The list of the leads: the stages of each, why one failed, and the message that was written.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { many, span } from '../../operators/numbers.ts';
import type { Progress, StageProgress } from '../../packages/client/index.ts';
import { Moment } from '../base/format.tsx';
import { Fresh } from '../base/fresh.tsx';
import { watchProgress } from '../base/live.ts';
import { complain } from '../base/messages.tsx';
import { askNow, usePoll } from '../base/poll.ts';
import { Words } from '../base/words.tsx';
import { fetchLeads, type Lead, mostLeads, startLead } from './project.ts';

/** The page says soon that the demo has ended. */
const everyMs = 4000;

interface Watched {
  progress?: Progress;
  /** Why there is no progress to see. */
  fault?: string;
}

/** The progress of each lead, by its id. */
const watched = signal<ReadonlyMap<string, Watched>>(new Map());

function note(id: string, known: Watched): void {
  const wasDone = watched.value.get(id)?.progress?.done;
  watched.value = new Map(watched.value).set(id, known);
  // The message and the company's name stand on the row.
  if (known.progress?.done && wasDone === false) askNow();
}

export function Leads() {
  const polled = usePoll('leads', fetchLeads, everyMs, everyMs).value;
  return (
    <>
      <Fresh of={polled}>{(leads) => <List leads={leads} />}</Fresh>
      {polled.error !== undefined && (
        <p class="hint">If the demo has ended, start it again and open the link that it prints then.</p>
      )}
    </>
  );
}

function List({ leads }: { leads: Lead[] }) {
  if (leads.length === 0) return <p>There are no leads yet. They appear here once they are inserted.</p>;
  const done = leads.filter(({ id }) => watched.value.get(id)?.progress?.done).length;
  return (
    <>
      <p role="status">
        {done} of {many(leads.length, 'lead')} done
        {leads.length === mostLeads && ', of those that were entered first'}
      </p>
      <ul class="leads">
        {leads.map((lead) => (
          <Row key={lead.id} lead={lead} />
        ))}
      </ul>
    </>
  );
}

function Row({ lead }: { lead: Lead }) {
  const { id, email, company, company_url } = lead;
  useEffect(
    () =>
      watchProgress(
        'leads',
        id,
        (progress) => note(id, { progress }),
        ({ message }) => note(id, { fault: message }),
      ),
    [id],
  );
  const { progress, fault } = watched.value.get(id) ?? {};
  return (
    <li aria-label={email}>
      <div class="head">
        <h2>
          <Words text={company ?? email} />
        </h2>
        <p class="hint">
          <Words text={company ? `${email}, ${company_url}` : company_url} />
        </p>
        {progress && <Start id={id} email={email} progress={progress} />}
      </div>
      {fault && <p class="fault">The stages are not shown: {fault}</p>}
      {progress && (
        <ol class="stages" aria-label="Stages">
          {Object.entries(progress.stages).map(([stage, its]) => (
            <Stage key={stage} name={stage} stage={its} />
          ))}
        </ol>
      )}
      {progress && <Below lead={lead} progress={progress} />}
    </li>
  );
}

function Start({ id, email, progress: { run, done, deleted } }: { id: string; email: string; progress: Progress }) {
  const label = run ? 'Run again' : 'Run';
  return (
    <button
      type="button"
      aria-label={`${label}: ${email}`}
      disabled={deleted || (run !== null && !done)}
      onClick={() => startLead(id).catch(complain)}
    >
      {label}
    </button>
  );
}

function Stage({ name, stage: { state, tries, started_at, ended_at } }: { name: string; stage: StageProgress }) {
  const tookMs = started_at && ended_at ? Date.parse(ended_at) - Date.parse(started_at) : 0;
  return (
    <li class={state}>
      <b>{name}</b> {state}
      {tries > 1 && `, try ${tries}`}
      {state === 'completed' && tookMs > 0 && ` in ${span(tookMs)}`}
    </li>
  );
}

/** Errors, the message or the expected end of a lead. */
function Below({ lead, progress }: { lead: Lead; progress: Progress }) {
  const { stages, done, deleted, expectedEnd } = progress;
  if (deleted) return <p class="hint">This lead was deleted.</p>;
  const troubled = Object.entries(stages).filter(([, { state, error }]) => error && state !== 'completed');
  return (
    <>
      {troubled.map(([stage, { error }]) => (
        <p class="fault" key={stage}>
          {stage}: <Words text={error?.message} most={500} />
        </p>
      ))}
      {done && lead.subject && (
        <details>
          <summary>
            Message: <Words text={lead.subject} />
          </summary>
          <p class="body">
            <Words text={lead.body} most={4000} />
          </p>
          <p>
            <Words text={lead.call_to_action} most={1000} />
          </p>
        </details>
      )}
      {!done && expectedEnd && (
        <p class="hint">
          Expected to be done by <Moment at={expectedEnd} />.
        </p>
      )}
    </>
  );
}
