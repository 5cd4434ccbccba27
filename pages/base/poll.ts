// Asking again and again, while somebody looks: every five seconds, less often where nothing changes or nobody answers.
import { type ReadonlySignal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';

/** The last answer of a poll, and why it may be old. */
export interface Polled<Answer> {
  answer: Answer | undefined;
  /** Why the last time brought nothing. */
  error: unknown;
  /** When the last answer came, by this machine's clock. */
  answeredAt: number;
  /** Whether an answer has been due for longer than anybody waits without a word. */
  isSlow: boolean;
}

/** After so long without an answer the page says that it waits. */
const slowMs = 5000;

const askAgain = new Set<() => void>();

/** Asks for all that is on the page at once, as after an action. */
export function askNow(): void {
  for (const again of askAgain) again();
}

/** Fields that differ between two answers although nothing has happened. */
const passing = new Set(['now', 'oldest_age', 'last_sweep_at', 'from', 'to']);
const printOf = (answer: unknown) => JSON.stringify(answer, (name, value) => (passing.has(name) ? undefined : value));

const none = { answer: undefined, error: undefined, answeredAt: 0, isSlow: false };

/** Begins to ask; returns how to end it. */
function keepAsking<Answer>(
  ask: () => Promise<Answer>,
  told: { value: Polled<Answer> },
  everyMs: number,
  restMs: number,
): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let pauseMs = everyMs;
  let print = '';
  let round = 0;

  async function next(): Promise<void> {
    clearTimeout(timer);
    round += 1;
    const mine = round;
    if (document.hidden) return;
    let polled: Polled<Answer>;
    const slow = setTimeout(() => {
      if (mine === round) told.value = { ...told.value, isSlow: true };
    }, slowMs);
    try {
      const answer = await ask();
      const now = printOf(answer);
      pauseMs = now === print ? Math.min(pauseMs * 1.5, Math.max(restMs, everyMs)) : everyMs;
      print = now;
      polled = { answer, error: undefined, answeredAt: Date.now(), isSlow: false };
    } catch (error) {
      pauseMs = Math.min(pauseMs * 2, Math.max(restMs, everyMs));
      polled = { ...told.value, error, isSlow: false };
    }
    clearTimeout(slow);
    if (mine !== round) return;
    told.value = polled;
    timer = setTimeout(next, pauseMs);
  }
  function again(): void {
    pauseMs = everyMs;
    void next();
  }
  const onSight = () => {
    if (!document.hidden) again();
  };
  document.addEventListener('visibilitychange', onSight);
  askAgain.add(again);
  void next();
  return () => {
    round += 1;
    clearTimeout(timer);
    askAgain.delete(again);
    document.removeEventListener('visibilitychange', onSight);
  };
}

/**
 * Polls `ask`, and returns its last answer as a signal.
 *
 * `key`: names the request; a new key begins anew.
 * `everyMs`: milliseconds between two polls.
 * `restMs`: the longest pause while answers do not change, in milliseconds.
 */
export function usePoll<Answer>(
  key: string,
  ask: () => Promise<Answer>,
  everyMs = 5000,
  restMs = 30_000,
): ReadonlySignal<Polled<Answer>> {
  const told = useMemo(() => signal<Polled<Answer>>(none), [key]);
  useEffect(() => keepAsking(ask, told, everyMs, restMs), [told, everyMs, restMs]);
  return told;
}
