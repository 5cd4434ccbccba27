const keptLines = 20;

/** The last lines of the functions that tell of something wrong. */
export interface FunctionTroubles {
  /** Takes a line that `source` wrote, and drops it where it reports that all is well. */
  add(source: string, line: string): void;
  /** The lines that are kept, oldest first, for a person to read. */
  lines(): string[];
  /** Has `print` called with each line that comes from now on. */
  follow(print: (line: string) => void): void;
}

/** Starts with nothing kept. */
export function functionTroubles(): FunctionTroubles {
  const kept: string[] = [];
  let tell = (_line: string) => {};
  return {
    add(source, line) {
      const text = troubleIn(line);
      if (text === '') return;
      kept.push(`${source}: ${text}`);
      if (kept.length > keptLines) kept.shift();
      tell(`${source}: ${text}`);
    },
    lines: () => [...kept],
    follow(print) {
      tell = print;
    },
  };
}

/** Returns the text of a warning or an error; empty for other reports. A line that is no report, as of a stack trace, stays. */
function troubleIn(line: string): string {
  const report = parseReport(line);
  if (!report) return line.trim();
  const { level, message, pipeline, stage, function: name, ...fields } = report;
  if (level !== 'warn' && level !== 'error') return '';
  const details = Object.entries(fields).map(([field, value]) => `${field} ${String(value)}`);
  return [`${level}, ${message}`, ...details].join(', ');
}

function parseReport(line: string): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = JSON.parse(line);
    return typeof parsed === 'object' && parsed !== null && 'level' in parsed ? { ...parsed } : undefined;
  } catch {
    return undefined;
  }
}
