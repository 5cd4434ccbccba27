// The state of a screen's request: it waits, it was refused, or its figures are old.
import type { ComponentChildren } from 'preact';
import { age } from '../../operators/numbers.ts';
import { clockAheadMs, StaleAt } from './format.tsx';
import type { Polled } from './poll.ts';
import { Refusal } from './refusal.ts';
import { Words } from './words.tsx';

const unknownFunction = /could not find the function|schema cache/i;

/** Says why an answer failed to come, and what to do. */
export function Trouble({ error }: { error: unknown }) {
  const message = error instanceof Error ? error.message : String(error);
  const hint = error instanceof Refusal ? error.hint : '';
  return (
    <div class="trouble" role="alert">
      <p>
        <Words text={message} most={1000} />
      </p>
      <p>
        {unknownFunction.test(message) ? (
          'The engine in this database is older or newer than this page: upgrade the engine, or take the page of its release.'
        ) : (
          <Words text={hint} most={1000} />
        )}
      </p>
    </div>
  );
}

interface FreshProps<Answer> {
  of: Polled<Answer>;
  children: (answer: Answer) => ComponentChildren;
}

/** Draws an answer, with what there is to say of its age; old figures stay, marked as such. */
export function Fresh<Answer>({ of: { answer, error, answeredAt, isSlow }, children }: FreshProps<Answer>) {
  const slow = isSlow && 'The project is slow to answer. ';
  if (answer === undefined) {
    return error ? <Trouble error={error} /> : <p class="hint">{slow}Asking the project …</p>;
  }
  const isOld = error !== undefined || isSlow;
  return (
    <>
      {error !== undefined && <Trouble error={error} />}
      {isOld && (
        <p class="stale">
          ⚠ {slow}What you see is {age(Date.now() - answeredAt)} old.
        </p>
      )}
      <StaleAt.Provider value={isOld ? answeredAt + clockAheadMs.value : null}>
        <div class={isOld ? 'old' : undefined}>{children(answer)}</div>
      </StaleAt.Provider>
    </>
  );
}
