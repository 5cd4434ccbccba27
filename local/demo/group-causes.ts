const columns = 92;

/** A link or another thing that ended or waits, and the cause. */
export interface Caused {
  /** Its address, or what it is called by. */
  name: string;
  cause: string;
}

/** Returns a line for each cause, the most frequent first: how many, why, and the first name, as wide as a screen. */
export function causeLines(all: Caused[]): string[] {
  const groups = new Map<string, string[]>();
  for (const { name, cause } of all) groups.set(cause, [...(groups.get(cause) ?? []), name]);
  const sorted = [...groups].sort(([, one], [, other]) => other.length - one.length);
  return sorted.map(([cause, [first = '', ...others]]) => {
    const more = others.length > 0 ? ` and ${others.length} more` : '';
    const line = `${String(others.length + 1).padStart(5)}  ${cause}: ${first}`;
    const room = columns - more.length;
    return `${line.length > room ? `${line.slice(0, room - 1)}…` : line}${more}`;
  });
}
