// The stretches of time that figures are shown of, each with the stretch of the same length before it.

export interface Range {
  name: string;
  /** As a sentence has it: the last hour. */
  says: string;
  /** As a chart has it: minute by minute. */
  by: string;
  seconds: number;
  stepSeconds: number;
}

const hour = 3600;
const day = 24 * hour;

/** Minutes are kept for two days, hours for 400: what is longer than an hour goes by whole hours. */
export const ranges: readonly [Range, ...Range[]] = [
  { name: '1h', says: 'hour', by: 'minute by minute', seconds: hour, stepSeconds: 60 },
  { name: '24h', says: '24 hours', by: 'hour by hour', seconds: day, stepSeconds: hour },
  { name: '7d', says: '7 days', by: 'in steps of six hours', seconds: 7 * day, stepSeconds: 6 * hour },
  { name: '30d', says: '30 days', by: 'day by day', seconds: 30 * day, stepSeconds: day },
];

/** Returns the range of this name; the last hour where there is none. */
export const rangeOf = (name: string | null | undefined): Range =>
  ranges.find((range) => range.name === name) ?? ranges[0];

/**
 * Returns the requests of `series` for a range and for the time before it. Both have as many steps, and the last one has just begun in
 * both. Steps begin on the minute, on the hour or at midnight UTC, as the database has them.
 */
export function stretchesOf({ seconds, stepSeconds }: Range, now: number) {
  const unit = stepSeconds % day === 0 ? day : stepSeconds % hour === 0 ? hour : 60;
  const first = Math.floor((now / 1000 - seconds + stepSeconds) / unit) * unit;
  const stretch = (from: number, to: number) => ({
    from: new Date(from * 1000).toISOString(),
    to: new Date(to).toISOString(),
    step_seconds: stepSeconds,
  });
  return { now: stretch(first, now), before: stretch(first - seconds, now - seconds * 1000) };
}

/** How many attempts a stage completed, and in how many seconds. */
export interface Pace {
  completed: number;
  seconds: number;
}

/** Returns when the newest five minutes began, the present one included, by the minute: epoch milliseconds. */
export const latelyFrom = (now: number): number => Math.floor(now / 60_000 - 4) * 60_000;

/** Returns the pace of the newest five minutes, from a trend by the minute. */
export function paceOf(trend: Record<string, number>, now: number): Pace {
  const from = latelyFrom(now);
  const completed = Object.entries(trend).reduce((sum, [at, many]) => sum + (Date.parse(at) >= from ? many : 0), 0);
  return { completed, seconds: (now - from) / 1000 };
}

/** Returns in how many milliseconds all that is ready is done at this pace, without new rows; null where nothing completes. */
export function emptyIn(ready: number, { completed, seconds }: Pace): number | null {
  if (ready === 0 || completed === 0) return null;
  return (ready / completed) * seconds * 1000;
}
