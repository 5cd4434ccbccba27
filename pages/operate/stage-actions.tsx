// Actions on the chosen stage and its runs, or on the whole pipeline.
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Pipeline, StageDefinition, StageHealth } from '../../operators/answers.ts';
import { countOf, many } from '../../operators/numbers.ts';
import { verbs } from '../../operators/verbs.ts';
import { Moment } from '../base/format.tsx';
import { to } from '../base/route.ts';
import { Words } from '../base/words.tsx';
import { type Action, ActionButton, againChoices, type Field, isForGood, throttleActions } from './actions.tsx';
import { Reason, SeenWorker } from './links.tsx';
import { NewestErrors } from './newest-error.tsx';
import { Marks } from './overview.tsx';

type Place = { pipeline: string; stage: string };

export function StageActions({
  pipeline: { pipeline, enabled, health, stages },
  stage,
}: {
  pipeline: Pipeline;
  stage: StageHealth | undefined;
}) {
  const definition = stages.find((one) => one.stage === stage?.stage);
  const of = stage ? [stage] : health;
  const ready = countOf(
    {
      ready: of.reduce((all, one) => all + one.ready, 0),
      at_least: of.flatMap(({ at_least }) => at_least ?? []),
    },
    'ready',
  );
  const place = { pipeline, ...(stage && { stage: stage.stage }) };
  const switches = [switchAction(place, stage ? stage.enabled : enabled, ready)];
  if (!stage || !definition) {
    return (
      <>
        <h3>All stages</h3>
        <Buttons label="The pipeline" actions={switches} of={pipeline} />
        <p class="hint">Choose a stage in the graph to act on it and on the runs there.</p>
      </>
    );
  }
  const here = { pipeline, stage: stage.stage };
  return (
    <>
      <StageTitle key={stage.stage} stage={stage} />
      <Reason of={stage.unattended} />
      <NewestErrors of={stage} />
      <SeenWorker of={stage} />
      <ReasonsToWait of={stage} />
      <Buttons
        label="The stage"
        actions={[...switches, ...throttleStage(here, stage), ...bypassActions(here, stage, definition)]}
        of={`${pipeline}.${stage.stage}`}
      />
      <Buttons label="Runs at the stage" actions={runsActions(here, stage)} of={`runs at ${pipeline}.${stage.stage}`} />
    </>
  );
}

/** Takes the focus, so that who has chosen a stage goes on from its actions: a graph may have sixty more to pass. */
function StageTitle({ stage }: { stage: StageHealth }) {
  const title = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => title.current?.focus({ preventScroll: true }), []);
  return (
    <h3 class="stage-title" tabIndex={-1} ref={title}>
      Stage <Words text={stage.stage} most={60} /> <Marks stage={stage} />{' '}
      <a href={to('runs', '', { pipeline: stage.pipeline, stage: stage.stage, status: 'running' })}>runs</a>{' '}
      <a href={to('pipeline', stage.pipeline)}>all stages</a>
    </h3>
  );
}

/** Pauses, throttles and bypasses of the stage: by whom, until when and why. */
function ReasonsToWait({ of: { paused, throttle, bypass } }: { of: StageHealth }) {
  const all = { paused, throttled: throttle, bypassed: bypass };
  return (
    <>
      {Object.entries(all).map(
        ([what, said]) =>
          said && (
            <p class="hint" key={what}>
              {what}
              {said.by && ' by '}
              <Words text={said.by} most={60} />
              {'until' in said && said.until && (
                <>
                  {' until '}
                  <Moment at={said.until} />
                </>
              )}
              {said.reason && ': '}
              <Words text={said.reason} most={300} />
            </p>
          ),
      )}
    </>
  );
}

function Buttons({ label, actions, of }: { label: string; actions: Action[]; of: string }) {
  return (
    <section class="actions labelled" aria-label={label}>
      <span class="hint" aria-hidden="true">
        {label}
      </span>
      {actions.map((action, place) => (
        // The other half of a pair takes the place of the first, and the focus stays there.
        <ActionButton key={place} action={{ ...action, title: `${action.label} ${of}` }} />
      ))}
    </section>
  );
}

const switchAction = (place: Partial<Place>, isOn: boolean, ready: string): Action =>
  isOn
    ? {
        label: 'Pause',
        what: `No row begins here until it is unpaused; rows in work go on. Ready now: ${ready}.`,
        request: { verb: 'pause', ...place },
      }
    : { label: 'Unpause', what: `It goes on at once. Ready now: ${ready}.`, request: { verb: 'unpause', ...place } };

const throttleStage = (place: Place, stage: StageHealth) =>
  throttleActions(
    place,
    !!stage.throttle,
    `No more rows than this start until the time is over. Ready now: ${countOf(stage, 'ready')}.`,
    `Its definition holds again. Ready now: ${countOf(stage, 'ready')}.`,
  );

function bypassActions(
  place: Place,
  stage: StageHealth,
  { kind, function: worker, left_out = 0 }: StageDefinition,
): Action[] {
  const { bypass } = stage;
  const leftOut = many(left_out >= 10_000 ? '10,000 or more' : left_out, 'row');
  return [
    bypass
      ? {
          label: 'End bypass',
          what: `Rows begin this stage again. Take up brings back what was left out (${leftOut}).`,
          request: { verb: 'end_bypass', ...place },
        }
      : {
          label: 'Bypass',
          what: `Until the bypass ends, rows go on without this stage, with null as its result. Queued here now: ${many(countOf(stage, 'ready', 'in_backoff'), 'row')}. Take up brings them back. Rows in work or waiting (${countOf(stage, 'started', 'waiting')}) go on as before.`,
          fields: [
            {
              name: 'minutes',
              label: 'For how many minutes',
              hint: 'Empty: until somebody ends it.',
              between: [1, 576_000],
            },
          ],
          request: ({ minutes }) => ({ verb: 'bypass', ...place, ...(minutes && { minutes: Number(minutes) }) }),
          needsReason: true,
          refused: worker === undefined ? `No worker takes anything of a ${kind} stage.` : undefined,
          harms: verbs.bypass.destroys,
        },
    {
      label: 'Take up',
      what: `A bypass left out ${leftOut}. The oldest begin this stage, and the stages after it start over.`,
      fields: [
        {
          name: 'count',
          label: 'How many at most',
          value: Math.min(Math.max(left_out, 1), 1000),
          between: [1, 10_000],
          isNeeded: true,
        },
      ],
      request: ({ count: most }) => ({ verb: 'take_up', ...place, count: Number(most) }),
      refused: bypass
        ? 'End the bypass first: it would leave them out again.'
        : left_out === 0
          ? 'No row that a bypass left out waits for it.'
          : undefined,
    },
  ];
}

/** The actions on all runs at a stage: each is counted first, and begun where its preview is shown. */
function runsActions(place: Place, stageHealth: StageHealth): Action[] {
  const { ready, in_backoff, started, waiting, failed } = stageHealth;
  const live = ready + in_backoff + started + waiting;
  const standing = countOf(stageHealth, 'ready', 'in_backoff', 'started', 'waiting');
  const here = `Standing here: ${standing}, failed here: ${countOf(stageHealth, 'failed')}.`;
  const first = 'You see how many runs match before anything is done.';
  const none = live + failed === 0 ? 'No run stands here, and none failed here.' : undefined;
  const which: Field = {
    name: 'status',
    label: 'Which runs',
    choices: ['running', 'failed'],
    value: failed > 0 ? 'failed' : 'running',
  };
  const preview = (verb: string, status: string | undefined, more: Record<string, unknown> = {}) => ({
    verb: 'preview',
    do: { verb, ...more },
    filter: { ...place, status },
  });
  const { stage } = place;
  const actions: Action[] = [
    {
      label: 'Retry',
      what: `${here} The failed ones are tried again, with tries as at the beginning. ${first}`,
      request: preview('retry', 'failed'),
      refused: failed === 0 ? 'No run failed here.' : undefined,
    },
    {
      label: 'Hurry',
      what: `In backoff here: ${countOf(stageHealth, 'in_backoff')}. Their next tries are due at once, and so are those of the same runs at other stages. ${first}`,
      request: preview('hurry', 'running'),
      refused: in_backoff === 0 ? 'No retry waits for its time here.' : undefined,
    },
    {
      label: 'Skip',
      what: `${here} They go on without this stage, with null as its result. Results of attempts in work are discarded. ${first}`,
      fields: [which],
      request: ({ status }) => preview('skip', status, { stage }),
      refused: none,
      harms: verbs.skip.destroys,
    },
    {
      label: 'Fail',
      what: `${here} The live ones fail with what you write. ${first}`,
      fields: [
        { name: 'message', label: 'The error that they get', isNeeded: true },
        { name: 'again', label: 'Tried again', choices: againChoices },
      ],
      request: ({ message, again }) => preview('fail', 'running', { stage, message, permanent: isForGood(again) }),
      refused: live === 0 ? 'No run stands here.' : undefined,
      harms: verbs.fail.destroys,
    },
    {
      label: 'Reset',
      what: `${here} They begin this stage, and the stages after it start over. ${first}`,
      fields: [which],
      request: ({ status }) => preview('reset', status, { stage }),
      refused: none,
      harms: verbs.reset.destroys,
    },
  ];
  return actions.map((action) => ({ ...action, leadsTo: ({ bulk }) => to('bulk', Number(bulk)) }));
}
