// How fast rows go through five stages that do nothing, on a whole stack with the platform's limits: many rows, and one alone.
import { type Line, type LineChoice, measureLines } from '../lines.ts';
import type { Measured } from '../results.ts';

const rows = 5_000;

const lines: Line[] = [
  ...[10, 50, 200].map((batch) => ({
    name: `${rows} rows, batch ${batch}`,
    module: 'through/run-rows.ts',
    options: { rows, batch },
  })),
  { name: 'one row', module: 'through/run-one-row.ts', options: { rows: 30 } },
];

/** Measures five stages over HTTP. */
export function through(choice: LineChoice): Promise<Measured[]> {
  return measureLines('through', lines, choice);
}
