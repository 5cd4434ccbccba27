// The trend of a stage: what completed there, step by step of the range.
import type { Figures } from '../../operators/answers.ts';
import { count, span } from '../../operators/numbers.ts';
import type { Range } from '../../operators/ranges.ts';

const height = 20;

interface TrendProps {
  /** How much completed, by the minute or the hour. */
  of: Record<string, number>;
  stage: string;
  /** The steps of the range. */
  points: Figures[];
  range: Range;
}

/** A line without axes; its name has the numbers in words. */
export function Trend({ of, stage, points, range }: TrendProps) {
  const first = Date.parse(points[0]?.at ?? '');
  const steps = points.map(() => 0);
  for (const [at, completed] of Object.entries(of)) {
    const step = Math.max(0, Math.floor((Date.parse(at) - first) / (range.stepSeconds * 1000)));
    if (step < steps.length) steps[step] = (steps[step] ?? 0) + completed;
  }
  const most = Math.max(1, ...steps);
  const sum = steps.reduce((all, one) => all + one, 0);
  const pace = `${count(Math.max(...steps, 0))} in a step of ${span(range.stepSeconds * 1000)} at most`;
  const name = `Completed at ${stage} in the last ${range.says}: ${count(sum)}${sum > 0 ? `; ${pace}, ${count(steps.at(-1) ?? 0)} in the present one` : ''}`;
  const y = (completed: number) => height - 1 - (completed / most) * (height - 2);
  return (
    <svg
      class="trend"
      viewBox={`0 0 ${Math.max(1, steps.length - 1)} ${height}`}
      role="img"
      aria-label={name}
      preserveAspectRatio="none"
    >
      <title>{name}</title>
      <polyline
        class={sum === 0 ? 'none' : undefined}
        points={steps.map((completed, step) => `${step},${y(completed)}`).join(' ')}
      />
    </svg>
  );
}
