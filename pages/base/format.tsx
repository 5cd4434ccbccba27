// Numbers, spans of time and moments as people read them.
import { signal } from '@preact/signals';

/** By how much the database's clock is ahead of this machine's, in milliseconds. */
export const clockAheadMs = signal(0);

/** What time it is in the database. */
export const databaseNow = () => Date.now() + clockAheadMs.value;

const whole = new Intl.NumberFormat('en-GB');
const compact = new Intl.NumberFormat('en-GB', { notation: 'compact', maximumFractionDigits: 1 });

/** A count in few characters: 9,999 and then 10k. */
export const count = (value: number) => (value < 10_000 ? whole.format(value) : compact.format(value).toLowerCase());

/** US dollars. */
export function dollars(value: number): string {
  if (value === 0) return '$0';
  return value < 0.01 ? '< $0.01' : `$${value.toLocaleString('en-GB', { maximumFractionDigits: value < 100 ? 2 : 0 })}`;
}

const units: [string, string, number][] = [
  ['d', 'day', 86_400_000],
  ['h', 'hour', 3_600_000],
  ['min', 'minute', 60_000],
  ['s', 'second', 1000],
];

/** A span in its largest unit, in words: 3 minutes. */
export function duration(ms: number | null): string {
  if (ms === null) return '';
  const [, unit, length] = units.find(([, , unitMs]) => ms >= unitMs) ?? ['', '', 0];
  if (!unit || !length) return `${Math.round(ms)} ms`;
  const many = Math.floor(ms / length);
  return `${many} ${unit}${many === 1 ? '' : 's'}`;
}

/** A span in few characters: 3 min, 1.5 s. */
export function span(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  const [unit, , length] = units.find(([, , unitMs]) => ms >= unitMs) ?? ['ms', '', 1];
  const many = ms / length;
  return `${many < 10 && length > 1 ? Math.round(many * 10) / 10 : Math.round(many)} ${unit}`;
}

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

/** How long ago a moment was; the exact one on hover. */
export function Ago({ at }: { at: string | null | undefined }) {
  if (!at) return <>–</>;
  return (
    <time dateTime={at} title={`${exact(at)} (${at})`}>
      {span(sinceMs(at))} ago
    </time>
  );
}
