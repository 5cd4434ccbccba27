// Moments as people read them, in their zone.
import { signal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { age } from '../../operators/numbers.ts';

/** By how much the database's clock is ahead of this machine's, in milliseconds. */
export const clockAheadMs = signal(0);

/** Returns the time of the database's clock, in epoch milliseconds. */
export const databaseNow = () => Date.now() + clockAheadMs.value;

/** When what is drawn was answered, by the database's clock, where no answer has come since; else null. */
export const StaleAt = createContext<number | null>(null);

/** Up to when what is drawn holds, by the database's clock: now, or when the last answer came. */
export const useAsOf = () => useContext(StaleAt) ?? databaseNow();

/** How long ago a moment was, by the database's clock. */
export const sinceMs = (time: string) => Math.max(0, databaseNow() - Date.parse(time));

const exact = (time: string) =>
  new Date(time).toLocaleString('en-GB', { dateStyle: 'full', timeStyle: 'long', hourCycle: 'h23' });

/** A moment in the reader's zone; the exact one on hover. */
export function Moment({ at }: { at: string | null | undefined }) {
  if (!at) return <>–</>;
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  const shown = isToday
    ? date.toLocaleTimeString('en-GB', { hourCycle: 'h23' })
    : date.toLocaleString('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
  return (
    <time dateTime={at} title={`${exact(at)} (${at})`}>
      {shown}
    </time>
  );
}

/** How long ago a moment was, or how long before the last answer where none has come since; the exact one on hover. */
export function Ago({ at }: { at: string | null | undefined }) {
  const staleAt = useContext(StaleAt);
  if (!at) return <>–</>;
  return (
    <time dateTime={at} title={`${exact(at)} (${at})`}>
      {age(staleAt === null ? sinceMs(at) : Math.max(0, staleAt - Date.parse(at)))}{' '}
      {staleAt === null ? 'ago' : 'before the last answer'}
    </time>
  );
}
