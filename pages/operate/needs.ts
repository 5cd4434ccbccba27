// Which pipelines and stages need a person: the page and the command line put the same ones first.
import type { PipelineHealth, StageHealth } from './answers.ts';

export interface Listed {
  pipeline: PipelineHealth;
  stages: StageHealth[];
}

/** Whether something is to be done at a stage, or somebody holds it back. */
export const isBusy = (s: StageHealth) =>
  s.ready + s.in_backoff + s.started + s.waiting + s.failed + s.late > 0 || !s.enabled || !!s.throttle || !!s.bypass;

/** Whether nothing is to be done in a pipeline, and nobody holds it back. */
export const isQuiet = ({ pipeline, stages }: Listed) =>
  pipeline.enabled && pipeline.open_alerts === '0' && !stages.some(isBusy);

/** The pipelines with their stages: first those with alerts, then what is late, dead, paused, and what has most to do. */
export function byNeed({ pipelines, stages }: { pipelines: PipelineHealth[]; stages: StageHealth[] }): Listed[] {
  // Each pipeline's stages are found and summed once: an overview may hold a thousand.
  const of = new Map<string, StageHealth[]>(pipelines.map(({ pipeline }) => [pipeline, []]));
  for (const stage of stages) of.get(stage.pipeline)?.push(stage);
  return pipelines
    .map((pipeline) => ({ pipeline, stages: of.get(pipeline.pipeline) ?? [] }))
    .map((listed) => ({ listed, needs: needsOf(listed) }))
    .sort((a, b) => a.needs.reduce((order, value, place) => order || (b.needs[place] ?? 0) - value, 0))
    .map(({ listed }) => listed);
}

function needsOf({ pipeline: { open_alerts, enabled }, stages }: Listed): number[] {
  const sum = (what: (stage: StageHealth) => number) => stages.reduce((all, stage) => all + what(stage), 0);
  return [
    Number.parseInt(open_alerts.replaceAll(',', ''), 10),
    sum(({ late }) => late),
    sum(({ failed }) => failed),
    enabled ? 0 : 1,
    sum(({ enabled: isOn, throttle, bypass }) => (!isOn || throttle || bypass ? 1 : 0)),
    sum(({ ready, started, waiting, in_backoff }) => ready + started + waiting + in_backoff),
  ];
}
