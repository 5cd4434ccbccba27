// What the benchmark measures, one value a line, and how it is shown.

export interface Result {
  /** Begins with chain, fan-out, hop, intake, cold-start, operate or sheet. */
  work: string;
  /** `millrace`, `floor`, a peer's name, or `beside` for another checkout of this project. */
  engine: string;
  variant: string;
  value: number;
  unit: string;
}

/** The middle of a list of numbers; of an even number, the mean of the two in the middle. */
export function median(values: number[]): number {
  return percentile(values, 50);
}

/** The value below which `share` per cent of the numbers lie, interpolated. Throws on an empty list. */
export function percentile(values: number[], share: number): number {
  if (values.length === 0) throw new Error('There is nothing to take a percentile of.');
  const sorted = [...values].sort((a, b) => a - b);
  const place = ((sorted.length - 1) * share) / 100;
  const below = sorted[Math.floor(place)] as number;
  const above = sorted[Math.ceil(place)] as number;
  return below + (above - below) * (place - Math.floor(place));
}

/** Three significant digits, but never less than whole units. */
export function round(value: number): number {
  return value >= 100 ? Math.round(value) : Number(value.toPrecision(3));
}

/** The results as a Markdown table. */
export function table(results: Result[]): string {
  const rows = results.map(({ work, engine, variant, value, unit }) => [
    work,
    engine,
    variant,
    value.toLocaleString('en-US', { maximumFractionDigits: 2 }),
    unit,
  ]);
  const cells = [['work', 'engine', 'variant', 'value', 'unit'], ...rows];
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...cells.map((row) => (row[column] as string).length)));
  const line = (row: string[]) =>
    `| ${row.map((cell, i) => (i === 3 ? cell.padStart(widths[i] as number) : cell.padEnd(widths[i] as number))).join(' | ')} |`;
  const rule = `| ${widths.map((width, i) => (i === 3 ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width))).join(' | ')} |`;
  return [line(cells[0] as string[]), rule, ...rows.map(line)].join('\n');
}
