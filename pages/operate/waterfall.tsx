// The attempts of a run on one line of time: queued, and then in work or waiting at a service. The table beneath says the same.
import { databaseNow } from '../base/format.tsx';
import { span } from '../base/numbers.ts';
import type { Attempt } from './answers.ts';

const mostBars = 60;
const width = 1000;
const tall = 20;

interface WaterfallProps {
  attempts: Attempt[];
  began: string;
}

export function Waterfall({ attempts, began }: WaterfallProps) {
  const shown = attempts.slice(-mostBars);
  const from = Date.parse(began);
  const endOf = (attempt: Attempt) => (attempt.ended_at ? Date.parse(attempt.ended_at) : databaseNow());
  const until = Math.max(from + 1, ...shown.map(endOf));
  const x = (time: number) => (Math.max(0, time - from) / (until - from)) * width;
  const bar = (kind: string, start: number, end: number, row: number) => (
    <rect class={kind} x={x(start)} width={Math.max(2, x(end) - x(start))} y={row * tall + 3} height={tall - 6} />
  );
  return (
    <figure class="waterfall">
      <figcaption class="hint">
        {span(until - from)} from the beginning: light is queued, dark in work or at a service
        {attempts.length > mostBars && `; the last ${mostBars} of ${attempts.length}`}
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
          {shown.map((attempt, row) => {
            const queued = Date.parse(attempt.queued_at);
            const started = attempt.started_at ? Date.parse(attempt.started_at) : endOf(attempt);
            return (
              <g key={attempt.attempt}>
                {bar('queued', queued, started, row)}
                {attempt.started_at &&
                  bar(attempt.state === 'failed' ? 'failed' : 'work', started, endOf(attempt), row)}
              </g>
            );
          })}
        </svg>
      </div>
    </figure>
  );
}
