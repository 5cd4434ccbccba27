// How close a stage comes to the ideal whose handlers wait for somebody: real functions in Deno, the Data API, the platform's limits.
import { type LineChoice, measureLines } from '../lines.ts';
import type { Measured } from '../results.ts';
import type { WaitLine } from './run-wait.ts';

const line = (rows: number, batch: number, workers: number, cpuMs: number): { name: string; options: WaitLine } => ({
  name: `${rows} rows, ${batch}×${workers}, ${cpuMs} ms`,
  options: { rows, batch, workers, cpuMs, poison: false },
});

const lines: { name: string; options: WaitLine }[] = [
  line(400, 10, 4, 5),
  line(1_000, 10, 4, 0),
  line(1_000, 50, 4, 0),
  line(1_000, 50, 4, 2),
  line(1_000, 50, 4, 5),
  line(200, 50, 4, 0),
  { name: '400 rows, 10×4, one burns for ever', options: { rows: 400, batch: 10, workers: 4, cpuMs: 0, poison: true } },
];

/** Measures a stage that waits for one to three seconds a row. */
export function wait(choice: LineChoice): Promise<Measured[]> {
  return measureLines(
    'wait',
    lines.map((one) => ({ ...one, module: 'wait/run-wait.ts' })),
    choice,
  );
}
