// Lines over time. A stretch that is dragged over leads to the runs of that time; the table beneath has the same numbers.
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import type { Figures } from '../../operators/answers.ts';
import type { Range } from '../../operators/ranges.ts';
import { Moment } from '../base/format.tsx';
import { Table } from '../base/table.tsx';
import type { Mark } from './marks.ts';

export interface Line {
  name: string;
  /** The name of a colour in base.css. */
  colour: string;
  dash?: number[];
  of: (point: Figures) => number | null;
}

interface ChartProps {
  title: string;
  points: Figures[];
  /** The points of the time before, which the first line shows in grey. */
  before?: Figures[] | undefined;
  range: Range;
  /** When something new was released, each a line from top to bottom. */
  marks?: Mark[];
  lines: Line[];
  shown: (value: number) => string;
  /** Told the beginning and end of what is dragged over. */
  onStretch?: (since: string, before: string) => void;
}

const tall = 160;

/** A time on the axis, in the reader's zone. */
const clock = (seconds: number, isDay: boolean) =>
  isDay
    ? new Date(seconds * 1000).toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })
    : new Date(seconds * 1000).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });

function options(
  { lines, points, before, range, shown, onStretch }: ChartProps,
  marks: { current: Mark[] },
  width: number,
): uPlot.Options {
  const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`);
  const isDays = range.seconds > 86_400;
  const axis = {
    stroke: colour('soft'),
    grid: { stroke: colour('line'), width: 0.5 },
    ticks: { stroke: colour('line') },
  };
  return {
    width,
    height: tall,
    cursor: { drag: { x: true, y: false, setScale: false } },
    legend: { show: true, live: false },
    axes: [
      {
        ...axis,
        values: (_plot, times) => times.map((time) => clock(time, isDays)),
        // Labels that name days stand at whole days, so that none is repeated.
        ...(isDays && { incrs: [1, 2, 4, 7, 14].map((days) => days * 86_400) }),
      },
      { ...axis, size: 64, values: (_plot, values) => values.map((value) => shown(value)) },
    ],
    scales: { y: { range: (_plot, _least, most) => [0, most * 1.1 || 1] } },
    series: [
      {},
      ...(before && lines[0]
        ? [{ label: `${lines[0].name}, the time before`, stroke: colour('before'), width: 2, points: { show: false } }]
        : []),
      ...lines.map(({ name, colour: ink, dash = [], of }) => ({
        label: name,
        stroke: colour(ink),
        width: 2,
        dash,
        // A line needs two points side by side; a minute between two without any has its own.
        points: { show: points.some((point) => of(point) === null), size: 6, fill: colour(ink) },
      })),
    ],
    hooks: {
      draw: [
        ({ ctx, bbox, valToPos }) =>
          drawMarks(ctx, bbox, marks.current, (at) => valToPos(at, 'x', true), colour('soft')),
      ],
      setSelect: [
        (plot) => {
          const { left, width: wide } = plot.select;
          if (wide < 4) return;
          const at = (x: number) => new Date(plot.posToVal(x, 'x') * 1000).toISOString();
          onStretch?.(at(left), at(left + wide));
        },
      ],
    },
  };
}

/** Draws a dashed line from top to bottom, with a flag, where something new was released. */
function drawMarks(
  ctx: CanvasRenderingContext2D,
  { left, top, width, height }: uPlot.BBox,
  marks: Mark[],
  placeOf: (seconds: number) => number,
  ink: string,
): void {
  ctx.save();
  ctx.strokeStyle = ink;
  ctx.fillStyle = ink;
  ctx.setLineDash([2, 4]);
  for (const { at } of marks) {
    // The present step has begun at the last point, behind which there is no room.
    const x = Math.min(placeOf(Date.parse(at) / 1000), left + width);
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    ctx.fillRect(x, top, 6, 6);
  }
  ctx.restore();
}

/** Which of the two themes the browser asks for; a chart is drawn in its colours, and anew where they change. */
function useTheme(): boolean {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const [isDark, setDark] = useState(dark.matches);
  useEffect(() => {
    const onChange = () => setDark(dark.matches);
    dark.addEventListener('change', onChange);
    return () => dark.removeEventListener('change', onChange);
  }, []);
  return isDark;
}

export function Chart(props: ChartProps) {
  const { title, points, before, range, lines, shown, onStretch } = props;
  const place = useRef<HTMLDivElement>(null);
  const drawn = useRef<uPlot | undefined>(undefined);
  // Marks come after the points. A plot made anew for them would end a stretch that is being dragged.
  const marks = useRef<Mark[]>([]);
  marks.current = props.marks ?? [];
  const theme = useTheme();
  const isEmpty = ![...points, ...(before ?? [])].some((point) => lines.some(({ of }) => of(point)));
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const [first] = lines;
    const data = [
      points.map(({ at }) => Date.parse(at) / 1000),
      ...(before && first ? [points.map((_, place) => (before[place] ? first.of(before[place]) : null))] : []),
      ...lines.map(({ of }) => points.map(of)),
    ];
    const plot = new uPlot(options(props, marks, element.clientWidth), data as uPlot.AlignedData, element);
    drawn.current = plot;
    const onResize = () => plot.setSize({ width: element.clientWidth, height: tall });
    window.addEventListener('resize', onResize);
    return () => {
      window.removeEventListener('resize', onResize);
      plot.destroy();
      drawn.current = undefined;
    };
  }, [points, before, theme]);
  useEffect(() => drawn.current?.redraw(false), [JSON.stringify(props.marks)]);
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      {isEmpty ? <p class="hint">Nothing happened in this time.</p> : <div ref={place} aria-hidden="true" />}
      <details hidden={isEmpty}>
        <summary>As a table</summary>
        <Table
          label={title}
          rows={points.filter((point) => lines.some(({ of }) => of(point)))}
          keyOf={({ at }) => at}
          columns={[
            {
              name: 'From',
              cell: ({ at }) => (
                <button
                  type="button"
                  onClick={() => onStretch?.(at, new Date(Date.parse(at) + range.stepSeconds * 1000).toISOString())}
                >
                  <Moment at={at} />
                </button>
              ),
            },
            ...lines.map(({ name, of }) => ({
              name,
              isNumber: true,
              cell: (point: Figures) => {
                const value = of(point);
                return value === null ? '–' : shown(value);
              },
            })),
          ]}
        />
      </details>
    </figure>
  );
}
