import type { Log } from '../../supabase/functions/_millrace/log.ts';
import type { LogLine } from './test.d.ts';

/** Returns a log that keeps its lines, each with these fields. */
export function keepLines(base: object = {}, lines: LogLine[] = []): { log: Log; lines: LogLine[] } {
  const keep =
    (level: LogLine['level']) =>
    (message: string, fields: object = {}) =>
      void lines.push({ level, message, ...base, ...fields });
  return { log: { info: keep('info'), warn: keep('warn'), error: keep('error') }, lines };
}
