// What helps against an error: the hint that it brought, and what docs/errors.md says of its code.
import page from '../../docs/errors.md?raw';
import { Words } from '../base/words.tsx';
import type { Fault } from './answers.ts';
import { readRemedies } from './remedies.ts';

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
