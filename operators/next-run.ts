// When pg_cron begins a job next, by its schedule.

const minute = 60_000;

/** Returns whether a value fits a field of a schedule: any value, a number, a range, every so many, or a list of these. */
const fits = (field: string, value: number, first: number) =>
  field.split(',').some((part) => {
    const [range = '', step = '1'] = part.split('/');
    const [from = first, to = from] = range === '*' ? [first, 99] : range.split('-').map(Number);
    return value >= from && value <= to && (value - from) % Number(step) === 0;
  });

/**
 * Returns when a schedule such as `10 seconds` or `17 3 * * *` (GMT) is next due, in epoch milliseconds; undefined where it cannot be told.
 *
 * `lastMs`: when the job began last; undefined before its first run.
 */
export function nextRun(schedule: string, lastMs: number | undefined, nowMs: number): number | undefined {
  const seconds = /^(\d+) seconds?$/.exec(schedule)?.[1];
  if (seconds !== undefined) return Math.max(nowMs, (lastMs ?? nowMs) + Number(seconds) * 1000);
  const fields = schedule.split(' ');
  if (fields.length !== 5) return undefined;
  const [minutes = '', hours = '', days = '', months = '', weekdays = ''] = fields;
  let at = new Date((Math.floor(nowMs / minute) + 1) * minute);
  const isDue = () => {
    // Sunday is 0 and 7.
    const day = at.getUTCDay();
    const [byDay, byWeekday] = [fits(days, at.getUTCDate(), 1), fits(weekdays, day, 0) || fits(weekdays, day || 7, 0)];
    // Where both name days, either is enough.
    const isDay = days.startsWith('*') || weekdays.startsWith('*') ? byDay && byWeekday : byDay || byWeekday;
    return isDay && fits(months, at.getUTCMonth() + 1, 1);
  };
  for (let looked = 0; looked < 366 + 24 + 60; looked += 1) {
    if (isDue() && fits(hours, at.getUTCHours(), 0)) {
      if (fits(minutes, at.getUTCMinutes(), 0)) return at.getTime();
      at = new Date(at.getTime() + minute);
    } else if (isDue()) at = new Date((Math.floor(at.getTime() / (60 * minute)) + 1) * 60 * minute);
    else at = new Date((Math.floor(at.getTime() / (1440 * minute)) + 1) * 1440 * minute);
  }
  return undefined;
}
