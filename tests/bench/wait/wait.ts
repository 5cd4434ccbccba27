// How close a stage comes to the ideal whose handlers wait for somebody: real functions in Deno, the Data API, the platform's limits.
import { type Line, type LineChoice, measureLines } from '../lines.ts';
import type { Measured } from '../results.ts';
import type { WaitLine } from './run-wait.ts';

const waiting = (rows: number, batch: number, workers: number, cpuMs: number): Line => {
  const options: WaitLine = { rows, batch, workers, cpuMs };
  return { name: `${rows} rows, ${batch}×${workers}, ${cpuMs} ms`, module: 'wait/run-wait.ts', options };
};

const poisonous: WaitLine = { rows: 400, batch: 10, workers: 4, cpuMs: 0, poisonous: 200 };

const lines: Line[] = [
  waiting(400, 10, 4, 5),
  waiting(1_000, 10, 4, 0),
  waiting(1_000, 50, 4, 0),
  waiting(1_000, 50, 4, 2),
  waiting(1_000, 50, 4, 5),
  waiting(200, 50, 4, 0),
  { name: '200 leads, a slow model', module: 'wait/run-leads.ts', options: { rows: 200 } },
  { name: '400 rows, 10×4, one burns for ever', module: 'wait/run-wait.ts', options: poisonous },
];

/** Measures a stage that waits for one to three seconds a row. */
export function wait(choice: LineChoice): Promise<Measured[]> {
  return measureLines('wait', lines, choice);
}
