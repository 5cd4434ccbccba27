// Says for what a run waits, and which command ends the wait.
import type { Pipeline, Run } from '../../operators/answers.ts';
import { heldUpAt, queuedAt, type Wait, waitsOf } from '../../operators/waits.ts';
import type { Api } from './ask-api.ts';

export type RunWithWaits = Run & { waits: string[] };

/** Adds to a run a sentence for each stage at which it waits for children, a person or a job, or is paused or throttled. */
export async function withWaits(api: Api, run: Run): Promise<RunWithWaits> {
  const queued = queuedAt(run);
  // Asked only where the answer matters: it reads the pipeline's whole backlog.
  const heldUp =
    queued.length > 0 ? heldUpAt(queued, await api.read<Pipeline>('pipeline', { pipeline: run.pipeline })) : [];
  return { ...run, waits: [...waitsOf(run), ...heldUp].map((wait) => `${wait.why}${endOf(wait, run)}`) };
}

/** Returns the rest of the sentence: the command that ends the wait or tells of it. */
function endOf({ kind, stage, attempt }: Wait, { run, pipeline }: Run): string {
  if (kind === 'job') return '';
  if (kind === 'children') return `, of which npx millrace runs --parent ${run} tells`;
  if (kind === 'throttle') return `; npx millrace throttle ${pipeline} ${stage} --end lets it go on`;
  if (kind === 'pause') return `; npx millrace unpause ${[pipeline, stage].filter(Boolean).join(' ')} lets it go on`;
  return (
    `: select public.millrace_decide(${attempt}, ANSWER) answers as JSON; ` +
    `npx millrace skip ${run} --stage ${stage} goes on without an answer`
  );
}
