// A pipeline's graph with what is at each stage now. The list of stages beneath says the same.
import dagre from '@dagrejs/dagre';
import { count } from '../base/format.tsx';
import { cut, visible } from '../base/words.tsx';
import type { StageDefinition, StageHealth } from './answers.ts';
import { to } from './route.ts';

const node = { width: 200, height: 64 };

interface GraphProps {
  pipeline: string;
  stages: StageDefinition[];
  health: Map<string, StageHealth>;
}

function layOut(stages: StageDefinition[]) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: 'LR', nodesep: 16, ranksep: 40, marginx: 4, marginy: 4 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { stage } of stages) graph.setNode(stage, { ...node });
  for (const { stage, needs } of stages) for (const need of needs) graph.setEdge(need, stage);
  dagre.layout(graph);
  return graph;
}

export function Graph({ pipeline, stages, health }: GraphProps) {
  const graph = layOut(stages);
  const { width = 0, height = 0 } = graph.graph();
  const path = (points: { x: number; y: number }[]) =>
    points.map(({ x, y }, n) => `${n ? 'L' : 'M'}${x} ${y}`).join('');
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <section class="scrolls graph" aria-label="Graph of the stages" tabIndex={0}>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
        <title>Graph of {pipeline}</title>
        {graph.edges().map((edge: { v: string; w: string }) => (
          <path key={`${edge.v} ${edge.w}`} class="edge" d={path(graph.edge(edge).points)} />
        ))}
        {stages.map(({ stage }) => {
          const { x, y } = graph.node(stage);
          return <Node key={stage} x={x} y={y} pipeline={pipeline} stage={stage} health={health.get(stage)} />;
        })}
      </svg>
    </section>
  );
}

interface NodeProps {
  x: number;
  y: number;
  pipeline: string;
  stage: string;
  health: StageHealth | undefined;
}

function Node({ x, y, pipeline, stage, health: h }: NodeProps) {
  const mark = h && (!h.enabled ? '⏸ paused' : h.throttle ? '◑ throttled' : h.bypass ? '⤼ bypassed' : '');
  const counts = h
    ? [`${count(h.ready)} ready`, `${count(h.started)} in work`, h.waiting > 0 && `${count(h.waiting)} waiting`]
    : [];
  return (
    <a href={to('pipeline', pipeline, { stage })}>
      <rect
        class={h && h.failed > 0 ? 'node dead' : 'node'}
        x={x - node.width / 2}
        y={y - node.height / 2}
        width={node.width}
        height={node.height}
        rx="6"
      />
      <text x={x - node.width / 2 + 8} y={y - 13} class="name">
        {visible(cut(stage, 20))}
      </text>
      <text x={x - node.width / 2 + 8} y={y + 5}>
        {counts.filter(Boolean).join(', ')}
      </text>
      <text x={x - node.width / 2 + 8} y={y + 23}>
        {[h && h.failed > 0 && `✗ ${count(h.failed)} dead`, mark].filter(Boolean).join(' ')}
      </text>
    </a>
  );
}
