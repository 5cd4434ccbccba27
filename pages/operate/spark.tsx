// A line of a range of time, step by step: what completed, what failed and what was tried again.

import type { Figures } from '../../operators/answers.ts';
import { count, span } from '../../operators/numbers.ts';
import type { Range } from '../../operators/ranges.ts';
import type { Mark } from './marks.ts';

const width = 240;
const height = 36;

interface SparkProps {
  points: Figures[];
  of: string;
  range: Range;
  /** When something new was released. */
  marks: Mark[];
}

/** Bars that stand on each other; the numbers are in its name. */
export function Spark({ points, of, range, marks }: SparkProps) {
  const totals = points.map(({ completed, failed, retried }) => completed + failed + retried);
  const most = Math.max(1, ...totals);
  const sum = (name: 'completed' | 'failed' | 'retried') => points.reduce((all, point) => all + point[name], 0);
  const name = `The last ${range.says} of ${of}: ${count(sum('completed'))} completed, ${count(sum('failed'))} failed, ${count(sum('retried'))} tried again; ${count(most)} in a step of ${span(range.stepSeconds * 1000)} at most${marks.map(({ what }) => `; new: ${what}`).join('')}`;
  const step = width / Math.max(1, points.length);
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={name} preserveAspectRatio="none">
      <title>{name}</title>
      {marks.map(({ at }) => {
        const x =
          ((Date.parse(at) - Date.parse(points[0]?.at ?? at)) / (points.length * range.stepSeconds * 1000)) * width;
        return <line key={at} x1={x} x2={x} y1="0" y2={height} class="mark" />;
      })}
      <line x1="0" x2={width} y1={height - 0.5} y2={height - 0.5} class="ground" />
      {points.map((point, place) => {
        let bottom = height;
        return (['completed', 'retried', 'failed'] as const).map((outcome) => {
          const tall = point[outcome] === 0 ? 0 : Math.max(1.5, (point[outcome] / most) * (height - 2));
          bottom -= tall;
          return tall === 0 ? null : (
            <rect
              key={outcome + point.at}
              class={outcome}
              x={place * step}
              y={bottom}
              width={Math.max(1, step - 1)}
              height={tall}
            />
          );
        });
      })}
    </svg>
  );
}
