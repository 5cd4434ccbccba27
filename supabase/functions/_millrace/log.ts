type Fields = Record<string, unknown>;

/** Writes one line of JSON to the function's log. Lines about an attempt name its run, trace and entity. */
export interface Log {
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
}

/** A log whose lines all carry `base`, such as the pipeline and the stage. */
export function createLog(base: Fields): Log {
  const line = (level: string, message: string, fields: Fields = {}) =>
    JSON.stringify({ level, message, ...base, ...fields });
  return {
    info: (message, fields) => console.log(line('info', message, fields)),
    warn: (message, fields) => console.warn(line('warn', message, fields)),
    error: (message, fields) => console.error(line('error', message, fields)),
  };
}
