// Says for what the attempts of a run wait, and what ends the wait.
import type { Run } from '../../operators/answers.ts';

/** Returns a sentence for each waiting attempt of a run: it waits for children, for a person, or for a job at a service. */
export function sayWaiting({ run, attempts, children }: Pick<Run, 'run' | 'attempts' | 'children'>): string[] {
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
