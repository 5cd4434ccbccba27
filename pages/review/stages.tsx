// The stages that an article's run goes through, as they move.
import { useEffect, useState } from 'preact/hooks';
import type { Progress, StageProgress } from '../../packages/client/index.ts';
import { Moment } from '../base/format.tsx';
import { session } from '../base/session.ts';
import { Words } from '../base/words.tsx';

/** States in which there is nothing to tell of a stage. */
const quiet = ['pending', 'skipped'];

export function Stages({ id }: { id: string }) {
  const [progress, setProgress] = useState<Progress>();
  const [fault, setFault] = useState('');
  // A sign-in after the session's end brings a new token.
  const reader = session.value;
  useEffect(() => {
    let stop: (() => void) | undefined;
    let isGone = false;
    import('../base/live.ts').then(
      ({ watchProgress }) => {
        if (!isGone) stop = watchProgress('articles', id, setProgress, ({ message }) => setFault(message));
      },
      () => setFault('A part of this page cannot be loaded: reload it.'),
    );
    return () => {
      isGone = true;
      stop?.();
    };
  }, [id, reader]);
  if (fault) return <p class="hint">The stages are not shown: {fault}</p>;
  const stages = Object.entries(progress?.stages ?? {}).filter(([, { state }]) => !quiet.includes(state));
  if (!progress?.run || stages.length === 0) return null;
  return (
    <>
      <ul class="stages" aria-label="Stages">
        {stages.map(([name, stage]) => (
          <li key={name} class={stage.state}>
            <b>{name}</b> {stage.state}
            <Troubles of={stage} />
          </li>
        ))}
      </ul>
      {progress.expectedEnd && !progress.done && (
        <p class="hint">
          Expected to be done by <Moment at={progress.expectedEnd} />.
        </p>
      )}
    </>
  );
}

function Troubles({ of: { state, tries, error } }: { of: StageProgress }) {
  return (
    <>
      {tries > 1 && `, try ${tries}`}
      {error && state !== 'completed' && (
        <>
          {': '}
          <Words text={error.message} most={300} />
        </>
      )}
    </>
  );
}
