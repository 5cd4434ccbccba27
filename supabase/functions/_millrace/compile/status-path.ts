import type { PipelineOptions, StageDefinition } from '../define/definition-schema.ts';
import { stagesAfter } from './stage-order.ts';
import { liveValues, type StatusDefinition, showsInLayer, showsOf } from './status-values.ts';

type Named = 'queued' | 'backoff' | 'started' | 'asked' | 'completed' | 'layer' | 'enter' | 'leave';

/** A stage with the values that it shows, each as text, and whether a run may go on without it. */
export interface ShownStage extends Partial<Record<Named, string>> {
  name: string;
  position: number;
  /** The value at which it may begin. */
  ready: string;
  live: string[];
  /** Values that the stage may show when it is done; undefined among them: it may show nothing. */
  done: (string | undefined)[];
  failed: string[];
  ends: string[];
  answers: Record<string, { from: unknown[] }>;
  interimMoves: unknown[][];
  discards: boolean;
  manual: boolean;
  onDemand: boolean;
  /** On demand, or after a stage that is. */
  demanded: boolean;
  mayFail: boolean;
  maySkip: boolean;
  given: boolean;
}

/** Returns the stages of a pipeline that shows its runs in one column, in the order of the chain. */
export function shownStages(
  status: StatusDefinition,
  stages: PipelineOptions['stages'],
  order: string[],
): ShownStage[] {
  const later = stagesAfter(stages);
  return order.map((name, position) => {
    const stage = stages[name] as StageDefinition;
    const shows = showsInLayer(status, name, showsOf(stage)) as Record<string, never>;
    const scalars = Object.entries(shows).filter(([, value]) => ['string', 'number'].includes(typeof value));
    const named: Partial<Record<Named, string>> = Object.fromEntries(scalars.map(([key, value]) => [key, `${value}`]));
    const { failed = {}, answers = {}, interimMoves = [], discard } = shows;
    const manual = stage.kind === 'manual';
    const onDemand = stage.onDemand === true;
    const mayFail = 'onFailure' in stage && stage.onFailure === 'continue';
    return {
      ...named,
      name,
      position,
      ready: named.queued ?? named.asked ?? '',
      live: liveValues(shows),
      done: [...(manual ? Object.keys(answers) : []), named.completed],
      failed: Object.values(failed).map(String),
      ends: Object.keys(('ends' in stage && stage.ends) || {}).map((end) => String(status.ends[end])),
      answers,
      interimMoves,
      discards: discard === true,
      manual,
      onDemand,
      demanded: onDemand || order.some((one) => stages[one]?.onDemand && later[one]?.includes(name)),
      mayFail,
      maySkip: stage.when !== undefined || stage.given !== undefined || onDemand || mayFail,
      given: stage.given !== undefined,
    };
  });
}

/** A value that a row comes to show, with its stage and phase, and the stage that was done right before. */
export interface Target {
  was?: string | undefined;
  value?: string | undefined;
  phase: string;
  at?: ShownStage | undefined;
  done?: ShownStage | undefined;
  /** The value of the stage before, where a person decides that stage. */
  via?: string | undefined;
}

/** Lists the values from the one that a row shows to another, as millrace.status_path() does for the history. */
export function statusPath({ was, value, phase, at, done, via }: Target): string[] {
  const shows = (stage: ShownStage | undefined) => was !== undefined && stage?.live.includes(was) === true;
  const among = (...values: unknown[]) => was !== undefined && values.includes(was);
  const within = shows(at);
  const after = !within && done !== at && shows(done);
  const crosses = at !== undefined && at.layer !== done?.layer;
  const begun = ['started', 'completed', 'failed', 'backoff'].includes(phase);
  const steps = [
    after && was === done?.backoff && done?.queued,
    after && among(done?.backoff, done?.queued) && done?.started,
    after && (via ?? done?.completed),
    after && crosses && done?.leave,
    crosses && phase !== 'dropped' && (after || was === undefined) && at?.enter,
    begun && (!within || was === at?.backoff) && at?.ready,
    begun && phase !== 'started' && (!within || among(at?.backoff, at?.queued)) && at?.started,
    value,
  ];
  const passed: string[] = [];
  for (const step of steps) if (typeof step === 'string' && step !== (passed.at(-1) ?? was)) passed.push(step);
  return passed;
}
