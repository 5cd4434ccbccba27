// The range that charts and sentences are about. It stands in the address; the way back keeps it.
import { useRef } from 'preact/hooks';
import type { Series, StageHealth } from '../../operators/answers.ts';
import { span } from '../../operators/numbers.ts';
import { emptyIn, latelyFrom, type Pace, type Range, rangeOf, ranges, stretchesOf } from '../../operators/ranges.ts';
import { databaseNow } from '../base/format.tsx';
import { usePoll } from '../base/poll.ts';
import { ask, route } from '../base/route.ts';
import { read } from './api.ts';

/** The range that the address names. */
export const chosenRange = (): Range => rangeOf(route.value.query.get('range'));

export function RangePicker() {
  const chosen = chosenRange();
  return (
    <fieldset class="range" aria-label="Range of the figures">
      {ranges.map((range) => (
        <button
          key={range.name}
          type="button"
          aria-pressed={range === chosen}
          title={`The last ${range.says}`}
          onClick={() => ask({ range: range === ranges[0] ? '' : range.name })}
        >
          {range.name}
        </button>
      ))}
    </fieldset>
  );
}

/** Figures of the range and of the time before it, of a pipeline or a stage; with what completed step by step at the stages of `trends`. */
export function useFigures(asked: { pipeline: string; stage?: string }, trends: string[] = []) {
  const range = chosenRange();
  // Figures go by the minute, and those of days change little in five.
  const every = range.stepSeconds === 60 ? 60_000 : 300_000;
  const key = `${JSON.stringify(asked)} ${range.name}`;
  const stretch = (of: 'now' | 'before', more = {}) =>
    read<Series>('series', { ...asked, ...more, ...stretchesOf(range, databaseNow())[of] });
  const named = useRef(trends);
  named.current = trends;
  // A stage that becomes busy has its trend from the next answer on.
  const now = usePoll(
    `series ${key}`,
    () => stretch('now', named.current.length > 0 ? { trends: named.current } : {}),
    every,
  );
  // The time before changes at its edges alone.
  const before = usePoll(`series before ${key}`, () => stretch('before'), 300_000);
  return { range, now: now.value, before: before.value.answer };
}

/** Returns the pace of each stage of a pipeline in the newest five minutes; undefined before an answer. */
export function usePaces(pipeline: string): Record<string, Pace> | undefined {
  const paces = usePoll(
    `paces ${pipeline}`,
    async () => {
      const [from, to] = [latelyFrom(databaseNow()), databaseNow()];
      const stretch = { from: new Date(from).toISOString(), to: new Date(to).toISOString(), step_seconds: 60 };
      const { stages = {} } = await read<Series>('series', { pipeline, ...stretch });
      const paced = Object.entries(stages).map(([stage, { completed }]) => [
        stage,
        { completed, seconds: (to - from) / 1000 },
      ]);
      return Object.fromEntries(paced) as Record<string, Pace>;
    },
    60_000,
  ).value;
  return paces.error === undefined ? paces.answer : undefined;
}

/** When the stage has nothing ready any more, at this pace and without new rows; empty where nothing completes. */
export function sayEmpty(stage: StageHealth, pace: Pace | undefined): string {
  const ms = pace ? emptyIn(stage.ready, pace) : null;
  if (ms === null) return '';
  return `${stage.at_least?.includes('ready') ? 'over ' : ''}${span(ms)}`;
}
