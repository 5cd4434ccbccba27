import { type Level, LogLines, lineOf, toJson } from './log-lines.ts';

type Fields = Record<string, unknown>;

/**
 * Writes lines of JSON to the function's log. Lines about an attempt name its run, trace and entity. Where more come at once than the
 * platform keeps, several go in one event, and what is left out is counted.
 */
export interface Log {
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
}

/** The platform counts the events of an isolate, whatever stage writes them. */
const lines = new LogLines();

/**
 * A log whose lines all carry `base`, such as the pipeline and the stage. `keep` gets each line, too: its message, and its own
 * fields as JSON.
 */
export function createLog(base: Fields, keep?: (level: Level, message: string, fields: string) => void): Log {
  const write =
    (level: Level) =>
    (message: string, fields: Fields = {}) => {
      lines.add(level, lineOf({ level, message }, base, fields));
      keep?.(level, String(message), toJson(fields));
    };
  return { info: write('info'), warn: write('warn'), error: write('error') };
}

/** Writes lines that wait for others, before a function ends. */
export function flushLog(): void {
  lines.flush();
}
