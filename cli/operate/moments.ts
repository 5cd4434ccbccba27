// Moments at the terminal, in the reader's zone, and how long ago they were by the database's clock.
import { span } from '../../operators/numbers.ts';

const isToday = (date: Date) => date.toDateString() === new Date().toDateString();

/** Returns a moment in few characters: 13:02:11 of today, 21 Nov, 13:02 of another day. */
export function moment(at: string | null | undefined): string {
  if (!at || Number.isNaN(Date.parse(at))) return '–';
  const date = new Date(at);
  return isToday(date)
    ? date.toLocaleTimeString('en-GB', { hourCycle: 'h23' })
    : date.toLocaleString('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
}

/** By how much the project's clock is ahead of this machine's, in milliseconds. */
let aheadMs = 0;

/** Learns the project's clock from an answer's `Date`, which tells whole seconds: less than two are no difference. */
export function learnClock(date: string | null): void {
  const ahead = Date.parse(date ?? '') - Date.now();
  aheadMs = Math.abs(ahead) > 2000 ? ahead : 0;
}

/** Returns how long lies between two moments; until now where the second is missing. */
export function between(from: string | null | undefined, to: string | null | undefined): string {
  if (!from) return '';
  return span(Math.max(0, (to ? Date.parse(to) : Date.now() + aheadMs) - Date.parse(from)));
}
