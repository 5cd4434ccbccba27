// Tells when a pg_cron schedule is due. Counts seconds from the last start; a cron library reads the minutes.
import { Cron } from 'croner';

export type Schedule =
  | { kind: 'interval'; milliseconds: number }
  /** `next` gives the first due time after a moment, null when there is none any more. */
  | { kind: 'calendar'; next(after: Date): Date | null };

/**
 * Reads `'[1-59] seconds'`, five cron fields (GMT) or a macro such as @daily. Throws on anything else. As in pg_cron a sixth
 * field is taken and not read: the first of six is minutes too.
 */
export function parseSchedule(text: string): Schedule {
  const seconds = /^\s*([1-9]|[1-5][0-9])\s+seconds?\s*$/i.exec(text)?.[1];
  if (seconds) return { kind: 'interval', milliseconds: Number(seconds) * 1000 };
  // pg_cron writes the last day of the month as $.
  const fields = text.trim().split(/\s+/, 5).join(' ');
  const cron = new Cron(fields.replaceAll('$', 'L'), { timezone: 'UTC', mode: '5-part', paused: true });
  return { kind: 'calendar', next: (after) => cron.nextRun(after) };
}
