// The ways from a row of a list to its pipeline and its stage.
import { to } from '../base/route.ts';
import { Words } from '../base/words.tsx';

/** A pipeline's name, or that of one of its stages, as the way to it. */
export function PipelineLink({ of: pipeline, stage }: { of: string; stage?: string }) {
  return (
    <a href={to('pipeline', pipeline, { stage })}>
      <Words text={stage ?? pipeline} most={60} />
    </a>
  );
}
