// The attempts of a run on one line of time: between tries, queued, in work, and waiting at a service, for children or a person.
// The table beneath says the same.

import type { Attempt, Run } from '../../operators/answers.ts';
import { span } from '../../operators/numbers.ts';
import { databaseNow } from '../base/format.tsx';

const mostBars = 60;
const width = 1000;
const tall = 20;

type Phase = 'between' | 'queued' | 'work' | 'waiting' | 'failed';

/** How much of a row's height each phase takes, so that colour is not all that tells them apart. */
const heights: Record<Phase, number> = { between: 2, queued: 8, work: 14, waiting: 14, failed: 14 };
const words: [Phase, string][] = [
  ['between', 'between tries'],
  ['queued', 'queued'],
  ['work', 'in work'],
  ['waiting', 'waiting for a service, children or a person'],
  ['failed', 'failed'],
];

/** Returns the phases of an attempt, each with its beginning and end in epoch milliseconds. */
export function phasesOf(attempt: Attempt, isWaiting: boolean, now: number): [Phase, number, number][] {
  const at = (time: string | undefined, otherwise: number) => (time ? Date.parse(time) : otherwise);
  const queued = Date.parse(attempt.queued_at);
  const end = at(attempt.ended_at, now);
  const started = Math.min(at(attempt.started_at, end), end);
  // When a try was due is known until it ends; after that its whole wait counts as the time between two tries.
  const due = attempt.retries > 0 ? Math.min(Math.max(at(attempt.due_at, started), queued), started) : queued;
  const phases: [Phase, number, number][] = [];
  if (due > queued) phases.push(['between', queued, due]);
  if (started > due) phases.push(['queued', due, started]);
  if (attempt.started_at)
    phases.push([attempt.state === 'failed' ? 'failed' : isWaiting ? 'waiting' : 'work', started, end]);
  return phases;
}

interface BarProps {
  phase: Phase;
  x: number;
  wide: number;
  row?: number;
}

function Bar({ phase, x, wide, row = 0 }: BarProps) {
  return <rect class={phase} x={x} width={wide} y={row * tall + (tall - heights[phase]) / 2} height={heights[phase]} />;
}

export function Waterfall({ run: { attempts, began_at, stages } }: { run: Run }) {
  const shown = attempts.slice(-mostBars);
  const kinds = new Map(stages.map(({ stage, kind }) => [stage, kind]));
  const now = databaseNow();
  const isWaiting = ({ state, stage }: Attempt) => state === 'waiting' || kinds.get(stage) !== 'function';
  const rows = shown.map((attempt) => phasesOf(attempt, isWaiting(attempt), now));
  const from = Date.parse(began_at);
  const until = Math.max(from + 1, ...rows.flat().map(([, , end]) => end));
  const x = (time: number) => (Math.max(0, time - from) / (until - from)) * width;
  const met = new Set(rows.flat().map(([phase]) => phase));
  return (
    <figure class="waterfall">
      <figcaption class="hint">
        {span(until - from)} from the beginning
        {attempts.length > mostBars && `; the last ${mostBars} of ${attempts.length} attempts`}
        {words
          .filter(([phase]) => met.has(phase))
          .map(([phase, word]) => (
            <span class="key" key={phase}>
              <svg width="24" height={tall} aria-hidden="true">
                <Bar phase={phase} x={1} wide={22} />
              </svg>{' '}
              {word}
            </span>
          ))}
      </figcaption>
      <div class="bars">
        <ol aria-hidden="true">
          {shown.map(({ attempt, stage }) => (
            <li key={attempt}>{stage}</li>
          ))}
        </ol>
        <svg
          height={shown.length * tall}
          viewBox={`0 0 ${width} ${shown.length * tall}`}
          preserveAspectRatio="none"
          aria-hidden="true"
        >
          {rows.map((phases, row) =>
            phases.map(([phase, start, end]) => (
              <Bar
                key={`${shown[row]?.attempt} ${phase}`}
                phase={phase}
                x={x(start)}
                wide={Math.max(2, x(end) - x(start))}
                row={row}
              />
            )),
          )}
        </svg>
      </div>
    </figure>
  );
}
