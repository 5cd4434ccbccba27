// The values that the benchmark measures, one value a line, and how it is shown.

export interface Result {
  /** Begins with chain, fan-out, hop, intake, gate, cold-start, operate, watch or sheet. */
  work: string;
  /** `millrace`, `floor`, a peer's name, or `beside` for another checkout of this project. */
  engine: string;
  variant: string;
  value: number;
  unit: string;
}

/** A line with several columns. */
export interface Measured {
  work: string;
  engine: string;
  line: string;
  /** By column; the same columns in every line of a kind, as far as they apply. */
  values: Values;
}

export type Values = Record<string, number | string>;

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
  const rows = results.map(({ work, engine, variant, value, unit }) => [work, engine, variant, shown(value), unit]);
  return markdown(['work', 'engine', 'variant', 'value', 'unit'], rows, (column) => column === 3);
}

/** Lines that have columns of their own, as Markdown tables: one for each kind and set of columns. */
export function lineTables(measured: Measured[]): string {
  const headOf = ({ work, values }: Measured) => [work, 'engine', ...Object.keys(values)];
  const tables = new Map<string, Measured[]>();
  for (const one of measured) {
    const key = JSON.stringify(headOf(one));
    tables.set(key, [...(tables.get(key) ?? []), one]);
  }
  const rowOf = ({ engine, line, values }: Measured) => [line, engine, ...Object.values(values).map(shown)];
  return [...tables]
    .map(([head, lines]) => markdown(JSON.parse(head), lines.map(rowOf), (column) => column > 1))
    .join('\n\n');
}

function shown(value: number | string): string {
  return typeof value === 'string' ? value : value.toLocaleString('en-US', { maximumFractionDigits: 2 });
}

function markdown(head: string[], rows: string[][], isNumber: (column: number) => boolean): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => (row[column] as string).length)));
  const line = (row: string[]) =>
    `| ${row.map((cell, i) => (isNumber(i) ? cell.padStart(widths[i] as number) : cell.padEnd(widths[i] as number))).join(' | ')} |`;
  const rule = `| ${widths.map((width, i) => (isNumber(i) ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width))).join(' | ')} |`;
  return [line(head), rule, ...rows.map(line)].join('\n');
}
