// A pipeline's graph with what is at each stage now. The list of stages beneath says the same.
import { Graph as Drawing, layout } from '@dagrejs/dagre';
import { useMemo, useRef } from 'preact/hooks';
import type { StageHealth } from '../../operators/answers.ts';
import { countOf } from '../../operators/numbers.ts';
import { cut, visible } from '../../operators/visible.ts';
import { to } from '../base/route.ts';
import { useEachSize } from '../base/sized.ts';

const wide = 190;
/** As tall as so many lines beneath the name need. */
const tallFor = (lines: number) => 32 + 17 * lines;

/** The text of a node, in up to four lines, and whether its stage has gone wrong. */
export interface Told {
  lines: string[];
  isBad: boolean;
}

interface GraphProps {
  pipeline: string;
  stages: { stage: string; needs: string[] }[];
  tell: (stage: string) => Told;
  /** The stage that the rest of the screen is about. */
  chosen?: string;
}

function layOut(stages: GraphProps['stages'], height: number) {
  const graph = new Drawing();
  graph.setGraph({ rankdir: 'LR', nodesep: 16, ranksep: 32, marginx: 4, marginy: 4 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { stage } of stages) graph.setNode(stage, { width: wide, height });
  for (const { stage, needs } of stages) for (const need of needs) graph.setEdge(need, stage);
  layout(graph);
  return graph;
}

export function Graph({ pipeline, stages, tell, chosen }: GraphProps) {
  // Sixty nodes take some tens of milliseconds, too much for each poll.
  const shape = JSON.stringify(stages.map(({ stage, needs }) => [stage, needs]));
  const tall = tallFor(Math.max(1, ...stages.map(({ stage }) => tell(stage).lines.length)));
  const graph = useMemo(() => layOut(stages, tall), [shape, tall]);
  const { width = 0, height = 0 } = graph.graph();
  const place = useRef<HTMLElement>(null);
  const middle = chosen && graph.hasNode(chosen) ? chosen : stages[0]?.stage;
  const at = middle === undefined ? { x: 0, y: 0 } : graph.node(middle);
  // Where its place is smaller than the graph, what is chosen is in the middle, or the first stage.
  useEachSize(() => {
    place.current?.scrollTo(at.x - place.current.clientWidth / 2, at.y - place.current.clientHeight / 2);
  }, [at.x, at.y]);
  const path = (points: { x: number; y: number }[]) =>
    points.map(({ x, y }, n) => `${n ? 'L' : 'M'}${x} ${y}`).join('');
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <section ref={place} class="scrolls graph" aria-label="Graph of the stages" tabIndex={0}>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
        <title>Graph of {pipeline}</title>
        {graph.edges().map((edge: { v: string; w: string }) => (
          <path key={`${edge.v} ${edge.w}`} class="edge" d={path(graph.edge(edge).points)} />
        ))}
        {stages.map(({ stage }) => {
          const { x, y } = graph.node(stage);
          return (
            <Node key={stage} {...{ x, y, tall, pipeline, stage }} told={tell(stage)} isChosen={stage === chosen} />
          );
        })}
      </svg>
    </section>
  );
}

interface NodeProps {
  x: number;
  y: number;
  tall: number;
  pipeline: string;
  stage: string;
  told: Told;
  isChosen: boolean;
}

/** Returns the text of each stage's node: its attempts now, and what holds them back. */
export function tellHealth(health: Map<string, StageHealth>, stages: { stage: string; kind: string }[]) {
  const gates = new Set(stages.filter(({ kind }) => kind === 'gate').map(({ stage }) => stage));
  return (stage: string): Told => {
    const h = health.get(stage);
    if (!h) return { lines: [], isBad: false };
    const mark = !h.enabled
      ? '⏸ paused'
      : h.unattended
        ? '▲ nobody there'
        : h.throttle
          ? '◑ throttled'
          : h.bypass
            ? '⤼ bypassed'
            : gates.has(stage)
              ? '⧖ gated'
              : '';
    const later = [
      h.waiting > 0 && `${countOf(h, 'waiting')} waiting`,
      h.in_backoff > 0 && [`${countOf(h, 'in_backoff')} in backoff`, h.backoff?.code].filter(Boolean).join(': '),
    ];
    const wrong = [h.failed > 0 && `✗ ${countOf(h, 'failed')} dead`, h.late > 0 && `${countOf(h, 'late')} late`];
    return {
      lines: [
        h.ready + h.started > 0 ? `${countOf(h, 'ready')} ready, ${countOf(h, 'started')} in work` : 'idle',
        later.filter(Boolean).join(', '),
        wrong.filter(Boolean).join(', '),
        mark,
      ].filter(Boolean),
      isBad: h.failed > 0 || !!h.unattended,
    };
  };
}

function Node({ x, y, tall, pipeline, stage, told: { lines, isBad }, isChosen }: NodeProps) {
  return (
    <a href={to('pipeline', pipeline, { stage })} aria-current={isChosen ? 'true' : undefined}>
      <rect class={isBad ? 'node dead' : 'node'} x={x - wide / 2} y={y - tall / 2} width={wide} height={tall} rx="6" />
      <text x={x - wide / 2 + 8} y={y - tall / 2 + 19} class="name">
        {visible(cut(stage, 20))}
      </text>
      {lines.map((text, line) => (
        <text key={text} x={x - wide / 2 + 8} y={y - tall / 2 + 37 + 17 * line}>
          {visible(cut(text, 27))}
        </text>
      ))}
    </a>
  );
}
