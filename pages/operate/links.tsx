// The ways from a row of a list to its pipeline and its stage, and why a stage's rows do not move.

import type { StageHealth, Unattended } from '../../operators/answers.ts';
import { sayBackoff, sayWorker } from '../../operators/needs.ts';
import { useAsOf } from '../base/format.tsx';
import { to } from '../base/route.ts';
import { Words } from '../base/words.tsx';
import { functionLog } from './dashboard.ts';

/** A pipeline's name, or that of one of its stages, as the way to it. */
export function PipelineLink({ of: pipeline, stage }: { of: string; stage?: string }) {
  return (
    <a href={to('pipeline', pipeline, { stage })}>
      <Words text={stage ?? pipeline} most={60} />
    </a>
  );
}

/** Why nobody takes up what is ready at a stage, what helps, and where its function's log is. */
export function Reason({ of, stage }: { of: Unattended | undefined; stage?: string }) {
  if (!of) return null;
  const log = functionLog(of.function_name);
  return (
    <p class="trouble">
      {stage && (
        <>
          <b>{stage}</b>:{' '}
        </>
      )}
      <Words text={`${of.why}; ${of.remedy}`} most={1000} />
      {log && (
        <>
          {' '}
          <a href={log}>log</a>
        </>
      )}
    </p>
  );
}

/** When a worker of the project's own was last seen at a stage, and its release. */
export function SeenWorker({ of: stage }: { of: StageHealth }) {
  const said = sayWorker(stage, useAsOf());
  if (!said) return null;
  return (
    <p class="hint">
      <Words text={said} most={300} />
    </p>
  );
}

/** Why attempts of a stage are in backoff, when the next is tried, and the error's own sentence. */
export function BackoffReason({ of: stage }: { of: StageHealth }) {
  const said = sayBackoff(stage, useAsOf());
  if (!said) return null;
  return (
    <p class="hint">
      <Words text={[said, stage.backoff?.message].filter(Boolean).join('. ')} most={600} />
    </p>
  );
}
