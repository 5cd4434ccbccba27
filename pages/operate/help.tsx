// The remedy of an error: the hint in its answer, and the entry of its code in docs/errors.md.
import page from '../../docs/errors.md?raw';
import type { Fault } from '../../operators/answers.ts';
import { readRemedies } from '../../operators/remedies.ts';
import { Words } from '../base/words.tsx';

const remedyOf = readRemedies(page);

export function Help({ error: { code, hint } }: { error: Fault }) {
  const known = remedyOf(code);
  return (
    <>
      {hint && (
        <p>
          Hint: <Words text={hint} most={2000} />
        </p>
      )}
      {known && (
        <p>
          {known.cause} {known.remedy}
        </p>
      )}
    </>
  );
}
