// A bar of how a stage's rows are divided among its states; the counts beside it say the same.
import type { StageHealth } from '../../operators/answers.ts';

const parts = ['started', 'waiting', 'ready', 'in_backoff', 'failed'] as const;

/** Empty for a stage without rows. */
export function StateBar({ of: stage }: { of: StageHealth }) {
  const sum = parts.reduce((all, part) => all + stage[part], 0);
  let left = 0;
  return (
    <svg class="state-bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
      {parts.map((part) => {
        const wide = sum === 0 ? 0 : (stage[part] / sum) * 100;
        left += wide;
        return wide > 0 && <rect key={part} class={part} x={left - wide} y="0" width={wide} height="1" />;
      })}
    </svg>
  );
}
