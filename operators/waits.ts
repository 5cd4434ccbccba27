// The waits of a run at its stages, for the page and the command line: each of them adds what ends the wait.
import type { Pause, Pipeline, Run } from './answers.ts';

export interface Wait {
  kind: 'person' | 'children' | 'job' | 'pause' | 'throttle';
  /** Null for a pause of the whole pipeline. */
  stage: string | null;
  /** The sentence, such as `ship is paused by ann: the printer jams`. */
  why: string;
  /** The attempt that waits for a person. */
  attempt?: number;
  /** When a throttle ends by itself. */
  until?: string;
}

/** Returns what the run's waiting attempts wait for. */
export function waitsOf({ attempts, children }: Run): Wait[] {
  const waiting = attempts.filter(({ state, superseded }) => state === 'waiting' && !superseded);
  return waiting.map(({ stage, attempt, service }) => {
    if (service === 'decision') return { kind: 'person', stage, attempt, why: `${stage} waits for a person` };
    const pipeline = children.find((of) => of.stage === stage)?.pipeline;
    if (pipeline) return { kind: 'children', stage, why: `${stage} waits for runs of ${pipeline}` };
    return { kind: 'job', stage, why: `${stage} waits for its job${service ? ` at ${service}` : ''}` };
  });
}

/** Returns the stages at which the run is queued. Pauses and throttles hold up these alone. */
export const queuedAt = ({ at = [] }: Run): string[] =>
  at.flatMap(({ state, stage }) => (state === 'queued' ? [stage] : []));

/** Returns the pauses and throttles of the stages at which a run is queued. A paused pipeline has one for all of them. */
export function heldUpAt(queued: string[], { pipeline, paused: whole, health }: Pipeline): Wait[] {
  if (whole) return [{ kind: 'pause', stage: null, why: `${pipeline} ${by('is paused', whole)}` }];
  return health
    .filter(({ stage }) => queued.includes(stage))
    .flatMap(({ stage, paused, throttle }): Wait[] => {
      if (paused) return [{ kind: 'pause', stage, why: `${stage} ${by('is paused', paused)}` }];
      if (!throttle) return [];
      return [{ kind: 'throttle', stage, why: `${stage} ${by('is throttled', throttle)}`, until: throttle.until }];
    });
}

const by = (what: string, pause: Pick<Pause, 'by' | 'reason'>) =>
  [[what, pause.by && `by ${pause.by}`].filter(Boolean).join(' '), pause.reason].filter(Boolean).join(': ');
