// Moments at the terminal, in the reader's zone, and how long ago they were by the database's clock.
import { span } from '../../pages/base/numbers.ts';

const isToday = (date: Date) => date.toDateString() === new Date().toDateString();

/** A moment in few characters: 13:02:11 of today, 21 Nov, 13:02 of another day. */
export function moment(at: string | null | undefined): string {
  if (!at || Number.isNaN(Date.parse(at))) return '–';
  const date = new Date(at);
  return isToday(date)
    ? date.toLocaleTimeString('en-GB', { hourCycle: 'h23' })
    : date.toLocaleString('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
}

/** How long lies between two moments; until `now` where the second is missing. */
export function between(from: string | null | undefined, to: string | null | undefined, now = Date.now()): string {
  if (!from) return '';
  return span(Math.max(0, (to ? Date.parse(to) : now) - Date.parse(from)));
}
