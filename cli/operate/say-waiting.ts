// Says for what a run waits, and what ends the wait.
import type { Pause, Pipeline, Run, StageHealth } from '../../operators/answers.ts';
import type { Api } from './ask-api.ts';

export type RunWithWaits = Run & { waits: string[] };

/** Adds to a run a sentence for each stage at which it waits for children, a person or a job, or is paused or throttled. */
export async function withWaits(api: Api, run: Run): Promise<RunWithWaits> {
  const queued = new Set(run.at?.flatMap(({ state, stage }) => (state === 'queued' ? [stage] : [])));
  // Asked only where the answer matters: it reads the pipeline's whole backlog.
  const asked = queued.size > 0 ? await api.read<Pipeline>('pipeline', { pipeline: run.pipeline }) : undefined;
  const health = asked?.health.filter(({ stage }) => queued.has(stage)) ?? [];
  return { ...run, waits: [...sayWaiting(run), ...health.flatMap((stage) => sayHeldUp(stage, asked?.paused ?? null))] };
}

function sayWaiting({ run, attempts, children }: Run): string[] {
  const waiting = attempts.filter(({ state, superseded }) => state === 'waiting' && !superseded);
  return waiting.map(({ stage, attempt, service }) => {
    if (service === 'decision') {
      return (
        `${stage} waits for a person: select public.millrace_decide(${attempt}, ANSWER) answers as JSON; ` +
        `npx millrace skip ${run} --stage ${stage} goes on without an answer`
      );
    }
    const pipeline = children.find((of) => of.stage === stage)?.pipeline;
    if (!pipeline) return `${stage} waits for its job${service ? ` at ${service}` : ''}`;
    return `${stage} waits for runs of ${pipeline}, of which npx millrace runs --parent ${run} tells`;
  });
}

function sayHeldUp({ pipeline, stage, paused, throttle }: StageHealth, whole: Pause | null): string[] {
  const at = `${pipeline} ${stage}`;
  if (whole) return [`${pipeline} ${by('is paused', whole)}; npx millrace unpause ${pipeline} lets it go on`];
  if (paused) return [`${stage} ${by('is paused', paused)}; npx millrace unpause ${at} lets it go on`];
  if (throttle) return [`${stage} ${by('is throttled', throttle)}; npx millrace throttle ${at} --end lets it go on`];
  return [];
}

const by = (what: string, pause: { by: string | null; reason: string | null }) =>
  [[what, pause.by && `by ${pause.by}`].filter(Boolean).join(' '), pause.reason].filter(Boolean).join(': ');
