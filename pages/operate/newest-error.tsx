// A stage's newest errors, whole and with their remedies: of what is in backoff, and of dead letters.
import type { Fault, ListedRun, StageHealth } from '../../operators/answers.ts';
import { sayBackoff } from '../../operators/needs.ts';
import { countOf } from '../../operators/numbers.ts';
import { saidOf } from '../../operators/remedies.ts';
import { Ago, useAsOf } from '../base/format.tsx';
import { usePoll } from '../base/poll.ts';
import { to } from '../base/route.ts';
import { Words } from '../base/words.tsx';
import { read } from './api.ts';
import { Help } from './help.tsx';
import { BackoffReason } from './links.tsx';

export function NewestErrors({ of: stage }: { of: StageHealth }) {
  const { backoff, failed } = stage;
  return (
    <>
      {backoff?.code ? <NewestError of={stage} status="running" /> : <BackoffReason of={stage} />}
      {failed > 0 && <NewestError of={stage} status="failed" />}
    </>
  );
}

/** The error of the newest run that is in backoff or has failed here. Dead letters with the code of the backoff are left out. */
function NewestError({ of: health, status }: { of: StageHealth; status: 'running' | 'failed' }) {
  const { pipeline, stage, backoff } = health;
  const isDead = status === 'failed';
  const filter = { pipeline, stage, status, ...(!isDead && { error_code: backoff?.code }) };
  const ask = () => read<{ runs: ListedRun[] }>('runs', { ...filter, limit: 1 });
  const [run] = usePoll(`newest ${JSON.stringify(filter)}`, ask, 15_000).value.answer?.runs ?? [];
  const error: Fault | undefined = run?.at?.find((at) => at.stage === stage)?.error ?? (isDead ? undefined : backoff);
  const waits = sayBackoff(health, useAsOf());
  if (!error || (isDead && error.code === backoff?.code)) return null;
  return (
    <section class="trouble" aria-label={isDead ? 'Newest dead letter' : 'Newest error in backoff'}>
      <p>
        <b>
          <Words text={isDead ? `${countOf(health, 'failed')} dead, the newest by ${error.code}` : waits} most={300} />
        </b>
        {run && (
          <>
            {' · '}
            <a href={to('run', run.run)}>
              <Words text={run.label ?? run.entity} most={60} />
            </a>
          </>
        )}
        {isDead && run?.ended_at && (
          <>
            {' · '}
            <Ago at={run.ended_at} />
          </>
        )}
      </p>
      <p>
        <Words text={saidOf(error)} most={2000} />
      </p>
      <Help error={error} />
    </section>
  );
}
